#include "../../config.h"
#include "expr.h"

#include <assert.h>
#include <limits.h>

#include "ast.h"
#include "fe_misc.h"
#include "initializer.h"
#include "type.h"
#include "util.h"
#include "var.h"

#ifndef __NO_FLONUM
#include <math.h>
#endif

Expr *string_expr(const Token *token, char *str, ssize_t len, enum StrKind kind) {
  enum FixnumKind fxkind = FX_CHAR;
  bool is_unsigned = false;
#ifndef __NO_WCHAR
  switch (kind) {
  case STR_CHAR:  break;
  case STR_WIDE:  fxkind = FX_INT; is_unsigned = true; break;  // TODO: Match with wchar_t.
  }
#endif
  Type *ctype = get_fixnum_type(fxkind, is_unsigned, 0);  // not const.
  Type *type = arrayof(ctype, len);
  type->qualifier = TQ_CONST;

  Expr *expr = new_expr(EX_STR, type, token);
  expr->str.buf = str;
  expr->str.len = len;
  expr->str.kind = kind;
  return expr;
}

Expr *calc_type_size(const Type *type) {
#ifndef __NO_VLA
  if (ptr_or_array(type) && type->pa.vla != NULL) {
    assert(type->pa.size_var != NULL);
    return type->pa.size_var;
  }
#endif
  return new_expr_fixlit(&tySize, NULL, type_size(type));
}

#ifndef __NO_VLA
Expr *reserve_vla_type_size(Type *type) {
  assert(!is_global_scope(curscope));
  if (!ptr_or_array(type))
    return NULL;

  // If VLA is nested, calculate subtype first.
  Type *subtype = type->pa.ptrof;
  Expr *sub = reserve_vla_type_size(subtype);
  if (type->pa.vla == NULL)
    return sub;

  const Token *token = type->pa.vla->token;
  Expr *var = alloc_tmp_var(curscope, &tySize);
  Expr *value = make_expr_num_bop(EX_MUL, token, make_cast(&tySize, token, type->pa.vla, false),
                                  calc_type_size(type->pa.ptrof));
  Expr *assign = new_expr_bop(EX_ASSIGN, &tySize, token, var, value);
  type->pa.size_var = var;

  if (sub != NULL)
    assign = new_expr_bop(EX_COMMA, &tySize, assign->token, sub, assign);
  return assign;
}

Expr *calc_vla_size(Type *type) {
  for (;;) {
    if (ptr_or_array(type) && type->pa.vla != NULL) {
      if (type->pa.size_var != NULL)
        break;
      return reserve_vla_type_size(type);
    }

    if (type->kind != TY_PTR)
      break;
    type = type->pa.ptrof;
  }
  return NULL;
}
#endif

#ifndef __NO_FLONUM
// A constant as an integer: what does not fit becomes the nearest value, as in gcc.
static Fixnum flonum_to_fixnum(double value, const Type *type) {
  if (is_bool(type))
    return value != 0;
  if (value != value)
    return 0;
  int bits = type_size(type) * TARGET_CHAR_BIT;
  if (type->fixnum.is_unsigned) {
    UFixnum max = bits >= 64 ? UINT64_MAX : ((UFixnum)1 << bits) - 1;
    if (value <= 0)
      return 0;
    return value >= (double)(max >> 1) * 2 + 2 ? max : (UFixnum)value > max ? max : (UFixnum)value;
  }
  Fixnum max = ((UFixnum)1 << (bits - 1)) - 1;
  if (value >= (double)max + 1 || (bits < 64 && value >= max))
    return max;
  if (value <= -(double)max - 1)
    return -max - 1;
  return (Fixnum)value;
}
#endif

Expr *make_cast(Type *type, const Token *token, Expr *sub, bool is_explicit) {
  check_cast(type, sub->type, is_zero(sub), is_explicit, token);
  if (same_type(type, sub->type)) {
    sub->type = type;
    return sub;
  }

  switch (sub->kind) {
  case EX_FIXNUM: case EX_FLONUM:
    {
#ifndef __NO_FLONUM
      switch (sub->kind) {
      case EX_FLONUM:
        if (type->kind == TY_FIXNUM)
          return new_expr_fixlit(type, sub->token, flonum_to_fixnum(sub->flonum, type));
        assert(type->kind == TY_FLONUM);
        return new_expr_flolit(type, sub->token, sub->flonum);
      case EX_FIXNUM:
        if (type->kind == TY_FLONUM) {
          Flonum flonum = is_unsigned(sub->type)
                              ? (Flonum)(UFixnum)sub->fixnum
                              : (Flonum)sub->fixnum;
          return new_expr_flolit(type, sub->token, flonum);
        }
        break;
      default:
        break;
      }
#endif

      assert(sub->kind == EX_FIXNUM);
      assert(!is_flonum(type));
      Fixnum value;
      if (is_bool(type))
        value = sub->fixnum != 0;
      else
        value = wrap_value(sub->fixnum, type_size(type), type->fixnum.is_unsigned);
      sub->fixnum = value;
      sub->type = type;
      return sub;
    }
    break;

  case EX_COMMA:
    sub->type = type;
    sub->bop.rhs = make_cast(type, token, sub->bop.rhs, is_explicit);
    return sub;
  default: break;
  }

  if (is_bool(type))
    return make_cond(sub);

#if XCC_TARGET_ARCH == XCC_ARCH_X64 && !defined(__NO_FLONUM)
  // On x64, cannot cast from double to uint64_t directly.
  size_t dst_size = type_size(type);
  if (is_flonum(sub->type) && is_unsigned(type) && dst_size >= 8) {
    // Transform from (uint64_t)flonum
    //   to: (flonum <= INT64_MAX) ? (int64_t)flonum
    //                             : ((int64_t)(flonum - (INT64_MAX + 1UL)) ^ (1L << 63))
    Type *i64t = get_fixnum_type_from_size(dst_size);
    Expr *cond = new_expr_bop(EX_LE, &tyBool, token, sub,
                              new_expr_flolit(sub->type, sub->token, (double)INT64_MAX));
    Expr *offsetted = make_expr_num_bop(
        EX_SUB, token, sub,
        new_expr_flolit(sub->type, sub->token, (uint64_t)INT64_MAX + 1UL));
    Expr *xorred = new_expr_bop(EX_BITXOR, i64t, token, make_cast(i64t, token, offsetted, false),
                                new_expr_fixlit(i64t, token, (uint64_t)1 << 63));
    sub = new_expr_ternary(token, cond, make_cast(i64t, token, sub, false), xorred, i64t);
  }
#endif

  return new_expr_cast(type, token, sub);
}

// The type of a value of an integer type in an expression.
Type *promoted_type(Type *type) {
  assert(type->kind == TY_FIXNUM);
  switch (type->fixnum.kind) {
  case FX_INT: case FX_LONG: case FX_LLONG:
    return get_fixnum_type(type->fixnum.kind, type->fixnum.is_unsigned, 0);
  case FX_ENUM:
    {
      // As in gcc, an enumeration is unsigned unless it has a negative member.
      const EnumInfo *info = type->fixnum.enum_.info;
      if (info == NULL && type->fixnum.enum_.tagname != NULL && curscope != NULL)
        info = find_enum(curscope, type->fixnum.enum_.tagname, NULL);
      return info != NULL && info->non_negative ? get_fixnum_type(FX_INT, true, 0) : &tyInt;
    }
  default:
    return &tyInt;
  }
}

// The usual arithmetic conversions.
Type *arithmetic_type(Type *ltype, Type *rtype) {
  assert(is_number(ltype) && is_number(rtype));
  bool lflo = is_flonum(ltype), rflo = is_flonum(rtype);
  if (lflo || rflo) {
    static Type *const kTypes[] = {&tyFloat, &tyDouble, &tyLDouble};
    enum FlonumKind lk = lflo ? ltype->flonum.kind : FL_FLOAT;
    enum FlonumKind rk = rflo ? rtype->flonum.kind : FL_FLOAT;
    return kTypes[lk > rk ? lk : rk];
  }
  ltype = promoted_type(ltype);
  rtype = promoted_type(rtype);
  size_t lsize = type_size(ltype), rsize = type_size(rtype);
  if (lsize != rsize)
    return lsize > rsize ? ltype : rtype;
  enum FixnumKind lk = ltype->fixnum.kind, rk = rtype->fixnum.kind;
  return get_fixnum_type(lk > rk ? lk : rk, ltype->fixnum.is_unsigned || rtype->fixnum.is_unsigned, 0);
}

static bool cast_numbers(Expr **pLhs, Expr **pRhs) {
  Expr *lhs = *pLhs;
  Expr *rhs = *pRhs;
  if (!is_number(lhs->type)) {
    parse_error(PE_NOFATAL, lhs->token, "number type expected");
    return false;
  }
  if (!is_number(rhs->type)) {
    parse_error(PE_NOFATAL, rhs->token, "number type expected");
    return false;
  }
  Type *type = arithmetic_type(lhs->type, rhs->type);
  *pLhs = make_cast(type, lhs->token, lhs, false);
  *pRhs = make_cast(type, rhs->token, rhs, false);
  return true;
}

static Expr *reduce_refer_deref_add(Expr *expr, Type *subtype, Expr *lhs, Fixnum rhs) {
  if (lhs->kind == EX_FIXNUM) {
    return new_expr_unary(EX_DEREF, expr->type, expr->token,
                          new_expr_fixlit(subtype, lhs->token, lhs->fixnum + rhs));
  } else if (lhs->kind == EX_DEREF && lhs->unary.sub->kind == EX_FIXNUM) {
    // Concat 2 deref.
    Expr *sub = lhs->unary.sub;
    return new_expr_unary(EX_DEREF, expr->type, expr->token,
                          new_expr_fixlit(sub->type, sub->token, sub->fixnum + rhs));
  } else if (lhs->kind == EX_ADD && lhs->bop.rhs->kind == EX_FIXNUM) {
    // *(((lhs->lhs) + (lhs->rhs)) + rhs) => *(lhs->lhs + (lhs->rhs + rhs))
    Expr *p = lhs->bop.lhs;
    Fixnum offset = lhs->bop.rhs->fixnum + rhs;
    if (offset == 0)
      p = make_cast(subtype, lhs->token, p, true);
    else
      p = new_expr_bop(EX_ADD, subtype, lhs->token, p,
                       new_expr_fixlit(lhs->bop.rhs->type, lhs->bop.rhs->token, offset));
    return new_expr_unary(EX_DEREF, expr->type, expr->token, p);
  }
  return NULL;
}

Expr *reduce_refer(Expr *expr) {
  // target->field => *(target + offset(field))
  switch (expr->kind) {
  case EX_MEMBER:
    {
      Expr *target = reduce_refer(expr->member.target);
      if (target->type->kind == TY_STRUCT && target->kind == EX_DEREF) {
        // (*sub).field => sub->field
        target = target->unary.sub;
      }

      const MemberInfo *member = expr->member.info;
      Type *ptype = member->type;
      ptype = ptrof(ptype->kind == TY_ARRAY ? array_to_ptr(ptype) : ptype);
      // target->field => *(target + offset(field))
      Expr *result = reduce_refer_deref_add(expr, ptype, target, member->offset);
      if (result != NULL)
        return result;

      // Transform member access to pointer dereference, only if target is referenceable.
      // target->field => *(target + offset(field))
      switch (target->kind) {
      case EX_VAR:
      case EX_DEREF:
        {
          Type *type = target->type;
          if (type->kind == TY_STRUCT) {
            // target.field => (&target)->field
            target = new_expr_unary(EX_REF, ptrof(type), target->token, target);
          }
          Expr *p;
          Type *ptype = ptrof(member->type);
          if (member->offset == 0)
            p = make_cast(ptype, expr->token, target, true);
          else
            p = new_expr_bop(EX_ADD, ptype, expr->token, target,
                             new_expr_fixlit(&tySize, expr->token, member->offset));
          return new_expr_unary(EX_DEREF, member->type, expr->token, p);
        }
      default:
        // ex. funcall().x cannot be taken its reference, so keep the expression.
        break;
      }
    }
    break;
  case EX_DEREF:
    {
      Expr *sub = expr->unary.sub;
      if (sub->kind == EX_ADD) {
        // *(lhs + rhs) => *lhs + rhs
        Expr *lhs, *rhs;
        if (sub->bop.lhs->kind != EX_FIXNUM) {
          lhs = sub->bop.lhs;
          rhs = sub->bop.rhs;
        } else {
          lhs = sub->bop.rhs;
          rhs = sub->bop.lhs;
        }
        Expr *lhs2 = reduce_refer(lhs);
        if (rhs->kind == EX_FIXNUM) {
          Expr *result = reduce_refer_deref_add(expr, sub->type, lhs2, rhs->fixnum);
          if (result != NULL)
            return result;
        }
        if (lhs2 != lhs)
          return new_expr_unary(EX_DEREF, expr->type, expr->token,
                                new_expr_bop(EX_ADD, sub->type, sub->token, lhs2, rhs));
      }
    }
    break;
  default: break;
  }
  return expr;
}

static void check_referable(const Token *tok, Expr *expr, const char *error) {
  if (expr->kind == EX_COMPLIT)
    return;
  check_lval(tok, expr, error);
}

Expr *make_refer(const Token *tok, Expr *expr) {
  check_referable(tok, expr, "Cannot take reference");

  expr = reduce_refer(expr);

  if (expr->kind == EX_DEREF)
    return expr->unary.sub;
  Expr *e = expr;
  if (e->kind == EX_COMPLIT)
    e = e->complit.var;
  if (e->kind == EX_VAR) {
    VarInfo *varinfo = scope_find(e->var.scope, e->var.name, NULL);
    if (varinfo == NULL) {
      // Variable undeclared error must be raised already, so ignore here.
    } else {
      varinfo->storage |= VS_REF_TAKEN;
      if (varinfo->storage & VS_STATIC && !is_global_scope(e->var.scope)) {
        VarInfo *gvarinfo = varinfo->static_.svar;
        gvarinfo->storage |= VS_REF_TAKEN;
      }
    }
  }
  return new_expr_unary(EX_REF, ptrof(expr->type), tok, expr);
}

Expr *promote_to_int(Expr *expr) {
  assert(expr->type->kind == TY_FIXNUM);
  enum FixnumKind kind = expr->type->fixnum.kind;
  if (kind >= FX_INT && kind <= FX_LLONG)
    return expr;
  return make_cast(promoted_type(expr->type), expr->token, expr, false);
}

static bool is_number_literal(Expr *expr) {
  return is_const(expr) && is_number(expr->type) && (expr->kind == EX_FIXNUM || expr->kind == EX_FLONUM);
}

// Both sides have the type of the result, except that a shift's right side may be of another integer type.
static Expr *fold_constants(enum ExprKind kind, Expr *lhs, Expr *rhs) {
  if (!is_number_literal(lhs) || !is_number_literal(rhs))
    return NULL;
  Type *type = lhs->type;
#ifndef __NO_FLONUM
  if (is_flonum(type)) {
    assert(is_flonum(rhs->type));
    // The result is rounded to the type, as the sides are already.
    double l = lhs->flonum, r = rhs->flonum, value;
    switch (kind) {
    case EX_ADD:  value = l + r; break;
    case EX_SUB:  value = l - r; break;
    case EX_MUL:  value = l * r; break;
    case EX_DIV:  value = l / r; break;
    default:  return NULL;
    }
    return new_expr_flolit(type, lhs->token, value);
  }
#endif
  bool is_unsigned = type->fixnum.is_unsigned;
  size_t size = type_size(type);
  Fixnum l = wrap_value(lhs->fixnum, size, is_unsigned);
  Fixnum r = wrap_value(rhs->fixnum, type_size(rhs->type), rhs->type->fixnum.is_unsigned);
  UFixnum ul = l, ur = r, value;
  int amount = ur & (size * TARGET_CHAR_BIT - 1);
  switch (kind) {
  case EX_ADD:     value = ul + ur; break;
  case EX_SUB:     value = ul - ur; break;
  case EX_MUL:     value = ul * ur; break;
  case EX_BITAND:  value = ul & ur; break;
  case EX_BITOR:   value = ul | ur; break;
  case EX_BITXOR:  value = ul ^ ur; break;
  case EX_LSHIFT:  value = ul << amount; break;
  case EX_RSHIFT:  value = is_unsigned ? ul >> amount : (UFixnum)(l >> amount); break;
  case EX_DIV: case EX_MOD:
    if (r == 0) {
      parse_error(PE_WARNING, rhs->token, "divide by 0");
      return NULL;
    }
    if (is_unsigned)
      value = kind == EX_DIV ? ul / ur : ul % ur;
    else if (r == -1)
      value = kind == EX_DIV ? -ul : 0;
    else
      value = kind == EX_DIV ? (UFixnum)(l / r) : (UFixnum)(l % r);
    break;
  default:
    return NULL;
  }
  return new_expr_fixlit(type, lhs->token, wrap_value(value, size, is_unsigned));
}

static bool has_effect(Expr *expr);

// As in gcc, a variable goes after what it is added to, so that it is read later.
static void put_variable_last(Expr **pLhs, Expr **pRhs) {
  Expr *lhs = *pLhs, *rhs = *pRhs;
  if (lhs->kind == EX_VAR && rhs->kind != EX_VAR && is_number(lhs->type) && has_effect(rhs)) {
    *pLhs = rhs;
    *pRhs = lhs;
  }
}

static Expr *make_expr_addsub(enum ExprKind kind, const Token *tok, Expr *lhs, Expr *rhs) {
  lhs = str_to_char_array_var(curscope, lhs);
  rhs = str_to_char_array_var(curscope, rhs);

  Type *type = NULL;
  Type *ltype = lhs->type;
  Type *rtype = rhs->type;
  assert(ltype != NULL);
  assert(rtype != NULL);
  if (is_number(ltype) && is_number(rtype)) {
    cast_numbers(&lhs, &rhs);
    Expr *folded = fold_constants(kind, lhs, rhs);
    if (folded != NULL)
      return folded;
    type = lhs->type;
    if (kind == EX_ADD)
      put_variable_last(&lhs, &rhs);
  } else if (ptr_or_array(ltype)) {
    if (is_fixnum(rtype)) {
      type = ltype;
      if (ltype->kind == TY_ARRAY)
        type = array_to_ptr(ltype);
      // lhs + ((size_t)rhs * sizeof(*lhs))
      if (!ensure_type_info(type->pa.ptrof, tok, curscope, true))
        return lhs;
      rhs = make_expr_num_bop(EX_MUL, rhs->token,
                              make_cast(&tySize, rhs->token, rhs, false),
                              calc_type_size(type->pa.ptrof));
    } else if (kind == EX_SUB && ptr_or_array(rtype)) {
      if (ltype->kind == TY_ARRAY)
        ltype = array_to_ptr(ltype);
      if (rtype->kind == TY_ARRAY)
        rtype = array_to_ptr(rtype);
      if (!same_type_without_qualifier(ltype, rtype, true)) {
        parse_error(PE_NOFATAL, tok, "different pointer diff");
        return new_expr_fixlit(&tySize, tok, 0);
      }
      if (is_void_ptr(ltype)) {
        // void* - void*
        parse_error(PE_WARNING, tok, "pointer subtraction of void*");
        ltype = rtype = ptrof(&tyChar);
        lhs = new_expr_cast(ltype, lhs->token, lhs);
        rhs = new_expr_cast(rtype, rhs->token, rhs);
      }
      // ((size_t)lhs - (size_t)rhs) / sizeof(*lhs)
      if (!ensure_type_info(ltype->pa.ptrof, tok, curscope, true))
        return lhs;
      if (is_const(lhs) && is_const(rhs)) {
        assert(lhs->kind == EX_FIXNUM);
        assert(rhs->kind == EX_FIXNUM);
        return new_expr_fixlit(get_fixnum_type(FX_LONG, false, 0), tok,
                               (lhs->fixnum - rhs->fixnum) / (Fixnum)type_size(ltype->pa.ptrof));
      }
      Expr *distance = new_expr_bop(
          EX_DIV, &tySSize, tok,
          make_cast(&tySSize, tok, new_expr_bop(EX_SUB, &tySize, tok, lhs, rhs), false),
          new_expr_fixlit(&tySSize, tok, type_size(ltype->pa.ptrof)));
      return make_cast(get_fixnum_type(FX_LONG, false, 0), tok, distance, false);
    }
  } else if (ptr_or_array(rtype)) {
    if (kind == EX_ADD && is_fixnum(ltype)) {
      type = rhs->type;
      if (type->kind == TY_ARRAY)
        type = array_to_ptr(type);
      // ((size_t)lhs * sizeof(*rhs)) + rhs
      if (!ensure_type_info(type->pa.ptrof, tok, curscope, true))
        return rhs;
      Expr *tmp = make_expr_num_bop(EX_MUL, lhs->token,
                                    make_cast(&tySize, lhs->token, lhs, false),
                                    new_expr_fixlit(&tySize, tok, type_size(type->pa.ptrof)));
      lhs = rhs;
      rhs = tmp;
      Type *t = ltype;
      ltype = rtype;
      rtype = t;
    }
  }
  if (type == NULL) {
    parse_error(PE_NOFATAL, tok, "cannot apply `%.*s'", (int)(tok->end - tok->begin), tok->begin);
    type = ltype;  // Dummy
  } else if (ptr_or_array(ltype)) {
    if (is_const(rhs)) {
      if (is_const(lhs)) {
        assert(lhs->kind == EX_FIXNUM);
        if (kind == EX_ADD) {
          lhs->fixnum += rhs->fixnum;
        } else {
          assert(kind == EX_SUB);
          lhs->fixnum -= rhs->fixnum;
        }
        return lhs;
      } else if (rhs->fixnum == 0) {
        return lhs;
      }
    }
  }
  return new_expr_bop(kind, type, tok, lhs, rhs);
}

Expr *make_expr_num_bop(enum ExprKind kind, const Token *tok, Expr *lhs, Expr *rhs) {
  switch (kind) {
  case EX_ADD: case EX_SUB:
    return make_expr_addsub(kind, tok, lhs, rhs);

  // integer only bop.
  case EX_MOD: case EX_BITAND: case EX_BITOR: case EX_BITXOR:
  case EX_LSHIFT: case EX_RSHIFT:
    if (!is_fixnum(lhs->type)) {
      parse_error(PE_NOFATAL, lhs->token, "int type expected");
      lhs = new_expr_fixlit(&tyInt, tok, 1);  // Dummy
    }
    if (!is_fixnum(rhs->type)) {
      parse_error(PE_NOFATAL, rhs->token, "int type expected");
      rhs = new_expr_fixlit(&tyInt, tok, 1);  // Dummy
    }

    if (kind == EX_LSHIFT || kind == EX_RSHIFT) {
      lhs = promote_to_int(lhs);
      rhs = promote_to_int(rhs);
      Expr *folded = fold_constants(kind, lhs, rhs);
      if (folded != NULL)
        return folded;
      rhs = make_cast(lhs->type, rhs->token, rhs, false);
      return new_expr_bop(kind, lhs->type, tok, lhs, rhs);
    }
    break;

  default:
    break;
  }

  if (!cast_numbers(&lhs, &rhs))
    return lhs;
  Expr *folded = fold_constants(kind, lhs, rhs);
  if (folded != NULL)
    return folded;
  if (is_fixnum(rhs->type) && is_const(rhs) && rhs->fixnum == 1 && (kind == EX_MUL || kind == EX_DIV))
    return lhs;  // no effect.
  Type *type = lhs->type;
  if (kind == EX_MUL || kind == EX_BITAND || kind == EX_BITOR || kind == EX_BITXOR)
    put_variable_last(&lhs, &rhs);
  return new_expr_bop(kind, type, tok, lhs, rhs);
}

#ifndef __NO_BITFIELD
// Whether a bit field has no sign.
static bool is_unsigned_bitfield(const MemberInfo *member) {
  Type *type = member->type;
  return type->fixnum.kind == FX_BOOL || (type->fixnum.kind == FX_ENUM ? promoted_type(type) : type)->fixnum.is_unsigned;
}

// The type in which the bits of a unit are moved.
static Type *bitfield_type(const MemberInfo *member, bool is_unsigned) {
  size_t size = type_size(get_fixnum_type(member->bitfield.base_kind, true, 0));
  return get_fixnum_type(size > type_size(&tyInt) ? FX_LLONG : FX_INT, is_unsigned, 0);
}

static Type *bitfield_unit_type(const MemberInfo *member) {
  return get_fixnum_type(member->bitfield.base_kind, true, 0);
}

static UFixnum bitfield_mask(const MemberInfo *member) {
  int width = member->bitfield.width;
  return width >= 64 ? ~(UFixnum)0 : ((UFixnum)1 << width) - 1;
}

// The value of a bit field in `src`, the unit that has it.
Expr *extract_bitfield_value(Expr *src, const MemberInfo *member) {
  const Token *tok = src->token;
  Type *utype = bitfield_type(member, true), *stype = bitfield_type(member, false);
  int bits = type_size(utype) * TARGET_CHAR_BIT;
  int position = member->bitfield.position, width = member->bitfield.width;
  bool is_unsigned = is_unsigned_bitfield(member);
  Expr *value = make_cast(utype, tok, src, false);
  if (is_unsigned) {
    if (position > 0)
      value = new_expr_bop(EX_RSHIFT, utype, tok, value, new_expr_fixlit(utype, tok, position));
    if (position + width < bits)
      value = new_expr_bop(EX_BITAND, utype, tok, value, new_expr_fixlit(utype, tok, bitfield_mask(member)));
  } else {
    if (position + width < bits)
      value = new_expr_bop(EX_LSHIFT, utype, tok, value, new_expr_fixlit(utype, tok, bits - position - width));
    value = make_cast(stype, tok, value, false);
    if (width < bits)
      value = new_expr_bop(EX_RSHIFT, stype, tok, value, new_expr_fixlit(stype, tok, bits - width));
  }
  // Its type after promotion.
  Type *type = promoted_type(member->type);
  if (width < (int)type_size(&tyInt) * TARGET_CHAR_BIT)
    type = &tyInt;
  return make_cast(type, tok, value, false);
}

// Stores `val` into `dst`, a unit whose bits were `src`.
static Expr *assign_bitfield_member(const Token *tok, Expr *dst, Expr *src, Expr *val,
                                    const MemberInfo *member) {
  Type *utype = bitfield_type(member, true);
  int position = member->bitfield.position;
  UFixnum mask = bitfield_mask(member);
  Expr *bits = make_cast(utype, tok, make_cast(member->type, tok, val, false), false);
  bits = new_expr_bop(EX_BITAND, utype, tok, bits, new_expr_fixlit(utype, tok, mask));
  if (position > 0)
    bits = new_expr_bop(EX_LSHIFT, utype, tok, bits, new_expr_fixlit(utype, tok, position));
  Expr *others = new_expr_bop(EX_BITAND, utype, tok, make_cast(utype, tok, src, false),
                              new_expr_fixlit(utype, tok, ~(mask << position)));
  Expr *unit = new_expr_bop(EX_BITOR, utype, tok, others, bits);
  return new_expr_bop(EX_ASSIGN, dst->type, tok, dst, make_cast(dst->type, tok, unit, false));
}

static Expr *in_sequence(const Token *tok, Expr *first, Expr *second) {
  return new_expr_bop(EX_COMMA, second->type, tok, first, second);
}

// `*pdst` becomes the unit of the bit field `lhs`. Returns what computes its address.
static Expr *bitfield_unit(const Token *tok, Expr *lhs, const MemberInfo *member, Expr **pdst) {
  Type *type = bitfield_unit_type(member);
  Type *ptype = ptrof(type);
  assert(!is_global_scope(curscope));
  Expr *ptr = alloc_tmp_var(curscope, ptype);
  *pdst = new_expr_unary(EX_DEREF, type, tok, ptr);
  return new_expr_bop(EX_ASSIGN, ptype, tok, ptr, make_cast(ptype, tok, make_refer(lhs->token, lhs), true));
}

Expr *assign_to_bitfield(const Token *tok, Expr *lhs, Expr *rhs, const MemberInfo *member) {
  // (ptr = &unit, val = rhs, *ptr = (*ptr & ~(mask << bitpos)) | ((val & mask) << bitpos), the new value)
  Expr *dst;
  Expr *result = bitfield_unit(tok, lhs, member, &dst);
  if (rhs->kind != EX_FIXNUM) {
    Expr *val = alloc_tmp_var(curscope, rhs->type);
    result = in_sequence(tok, result, new_expr_bop(EX_ASSIGN, rhs->type, tok, val, rhs));
    rhs = val;
  }
  result = in_sequence(tok, result, assign_bitfield_member(tok, dst, dst, rhs, member));
  // If the result is not used then the calculation is eliminated so no need to worry about it.
  return in_sequence(tok, result, extract_bitfield_value(dst, member));
}

static Expr *transform_incdec_of_bitfield(enum ExprKind kind, Expr *target, const Token *tok,
                                          const MemberInfo *member) {
  // (ptr = &unit, old = value of *ptr, *ptr = with old + 1, old or the new value)
  Expr *dst;
  Expr *result = bitfield_unit(tok, target, member, &dst);
  Expr *value = extract_bitfield_value(dst, member);
  Expr *old = alloc_tmp_var(curscope, value->type);
  result = in_sequence(tok, result, new_expr_bop(EX_ASSIGN, value->type, tok, old, value));
  bool dec = (kind - EX_PREINC) & 1, post = kind >= EX_POSTINC;
  Expr *after = make_expr_num_bop(dec ? EX_SUB : EX_ADD, tok, old, new_expr_fixlit(&tyInt, tok, 1));
  result = in_sequence(tok, result, assign_bitfield_member(tok, dst, dst, after, member));
  return in_sequence(tok, result, post ? old : extract_bitfield_value(dst, member));
}
#endif

// `++` and `--` of what is no number of the machine: (ptr = &target, old = *ptr, *ptr = old + 1, old or *ptr)
static Expr *incdec_by_assignment(enum ExprKind kind, Expr *target, const Token *tok) {
  Type *type = target->type, *ptype = ptrof(type);
  Expr *ptr = alloc_tmp_var(curscope, ptype), *old = alloc_tmp_var(curscope, type);
  Expr *dst = new_expr_unary(EX_DEREF, type, tok, ptr);
  bool dec = (kind - EX_PREINC) & 1, post = kind >= EX_POSTINC;
  Expr *after = make_expr_num_bop(dec ? EX_SUB : EX_ADD, tok, old, new_expr_fixlit(&tyInt, tok, 1));
  Expr *take = new_expr_bop(EX_ASSIGN, ptype, tok, ptr, make_refer(tok, target));
  Expr *load = new_expr_bop(EX_ASSIGN, type, tok, old, dst);
  Expr *store = new_expr_bop(EX_ASSIGN, type, tok, dst, make_cast(type, tok, after, false));
  Expr *result = new_expr_bop(EX_COMMA, type, tok, take, load);
  result = new_expr_bop(EX_COMMA, type, tok, result, store);
  return new_expr_bop(EX_COMMA, type, tok, result, post ? old : dst);
}

Expr *incdec_of(enum ExprKind kind, Expr *target, const Token *tok) {
  check_referable(tok, target, "lvalue expected");
#ifndef __NO_BITFIELD
  if (target->kind == EX_MEMBER) {
    const MemberInfo *member = target->member.info;
    if (member->bitfield.width > 0)
      return transform_incdec_of_bitfield(kind, target, tok, member);
  }
#endif
  if (is_bool(target->type))
    return incdec_by_assignment(kind, target, tok);
  return new_expr_unary(kind, target->type, tok, target);
}

static Expr *make_expr_cmp_const_folding(enum ExprKind kind, const Token *tok, Expr *lhs, Expr *rhs) {
#define JUDGE(kind, tf, l, r)               \
  switch (kind) {                           \
  default: assert(false); /* Fallthrough */ \
  case EX_EQ: tf = l == r; break;           \
  case EX_NE: tf = l != r; break;           \
  case EX_LT: tf = l < r; break;            \
  case EX_LE: tf = l <= r; break;           \
  case EX_GE: tf = l >= r; break;           \
  case EX_GT: tf = l > r; break;            \
  }

  bool tf = false;
  switch (lhs->kind) {
  default:
    assert(false);
    // Fallthrough to suppress warning.
  case EX_FIXNUM:
    switch (rhs->kind) {
    case EX_FIXNUM:
      if (lhs->type->fixnum.is_unsigned || rhs->type->fixnum.is_unsigned) {
        UFixnum l = lhs->fixnum, r = rhs->fixnum;
        JUDGE(kind, tf, l, r);
      } else {
        Fixnum l = lhs->fixnum, r = rhs->fixnum;
        JUDGE(kind, tf, l, r);
      }
      break;
#ifndef __NO_FLONUM
    case EX_FLONUM: assert(false); break;  // Comparing fix and flo is automatically casted.
#endif
    case EX_STR:
      switch (kind) {
      case EX_EQ: tf = false; break;
      case EX_NE: tf = true; break;
      default: break;
      }
      break;
    default: break;
    }
    break;
#ifndef __NO_FLONUM
  case EX_FLONUM:
    switch (rhs->kind) {
    case EX_STR: break;
    case EX_FIXNUM: assert(false); break;  // Comparing fix and flo is automatically casted.
    case EX_FLONUM:
      {
        Flonum l = lhs->flonum;
        Flonum r;
        if (rhs->kind == EX_FLONUM) {
          r = rhs->flonum;
        } else if (rhs->kind == EX_FIXNUM) {
          r = rhs->type->fixnum.is_unsigned ? (Flonum)(UFixnum)rhs->fixnum : (Flonum)rhs->fixnum;
        } else {
          break;
        }
        JUDGE(kind, tf, l, r);
      }
      break;
    default: break;
    }
    break;
#endif
  case EX_STR:
    switch (kind) {
    case EX_EQ: tf = false; break;
    case EX_NE: tf = true; break;
    default: break;
    }
    break;
  }
  return new_expr_fixlit(&tyInt, tok, tf);
#undef JUDGE
}

static Expr *make_expr_equality_unnested(enum ExprKind kind, const Token *tok, Expr *lhs, Expr *rhs) {
  // !(x == true) => x != true
  // !(x && y) => !x || !y

  if (kind != EX_EQ && kind != EX_NE)
    return NULL;

  Expr *v, *c;
  if (is_const(lhs)) {
    v = rhs;
    c = lhs;
  } else {
    v = lhs;
    c = rhs;
  }
  assert(is_const(c));
  enum { NEVER = -1, UNKNOWN = -2 };
  int value = UNKNOWN;
  switch (c->kind) {
#ifndef __NO_FLONUM
  case EX_FLONUM:
    if (c->flonum == 0.0)
      value = 0;
    else if (c->flonum == 1.0)
      value = 1;
    else
      value = NEVER;
    break;
#endif
  case EX_FIXNUM:
    value = c->fixnum == 0 || c->fixnum == 1 ? c->fixnum : NEVER;
    break;
  case EX_STR:
    value = NEVER;
    break;
  default:
    break;
  }

  Expr *p = strip_cast(v);
  int k = kind;
  switch (value) {
  case 1:
    // Swap condition that regard the value as 0.
    k = (EX_EQ + EX_NE) - k;  // EQ <-> NE
    // Fallthrough
  case 0:
    // Eliminate comparing comparison result with 0.
    switch (p->kind) {
    case EX_EQ: case EX_NE:
      if (k == EX_EQ)
        p->kind = (EX_EQ + EX_NE) - p->kind;  // EQ <-> NE
      return p;
    case EX_LT: case EX_LE: case EX_GE: case EX_GT:
      if (k == EX_EQ && is_flonum(p->bop.lhs->type))
        return NULL;  // With a NaN, `!(a < b)` is not `a >= b`.
      if (k == EX_EQ)
        p->kind = EX_LT + ((p->kind - EX_LT) ^ 2);  // LT <-> GE, LE <-> GT
      return p;
    case EX_LOGAND: case EX_LOGIOR:
      if (k == EX_EQ)
        p = new_expr_bop(
            (EX_LOGAND + EX_LOGIOR) - p->kind,  // LOGAND <-> LOGIOR
            &tyBool, p->token,
            make_not_expr(p->bop.lhs->token, p->bop.lhs),
            make_not_expr(p->bop.rhs->token, p->bop.rhs));
      return p;
    default: break;
    }
    break;
  case NEVER:
    switch (p->kind) {
    case EX_EQ: case EX_NE:
    case EX_LT: case EX_LE: case EX_GE: case EX_GT:
    case EX_LOGAND: case EX_LOGIOR:
      parse_error(PE_WARNING, tok, "always %s", kind != EX_EQ ? "true" : "false");
      return new_expr_bop(EX_COMMA, &tyBool, tok, v,
                          new_expr_fixlit(&tyBool, tok, (kind != EX_EQ)));
    default: break;
    }
    break;
  case UNKNOWN: default:
    break;
  }
  return NULL;
}

Expr *make_expr_cmp(enum ExprKind kind, const Token *tok, Expr *lhs, Expr *rhs) {
  if (lhs->type->kind == TY_FUNC)
    lhs = make_refer(lhs->token, lhs);
  if (rhs->type->kind == TY_FUNC)
    rhs = make_refer(rhs->token, rhs);

  bool lc = is_const(lhs), rc = is_const(rhs);
  if (is_number(lhs->type) && is_number(rhs->type))
    cast_numbers(&lhs, &rhs);

  if (lc || rc) {
    if (lc && rc)
      return make_expr_cmp_const_folding(kind, tok, lhs, rhs);

    Expr *unnested = make_expr_equality_unnested(kind, tok, lhs, rhs);
    if (unnested != NULL)
      return unnested;
  }

  lhs = str_to_char_array_var(curscope, lhs);
  rhs = str_to_char_array_var(curscope, rhs);

  Type *lt = lhs->type, *rt = rhs->type;
  if (ptr_or_array(lt) || ptr_or_array(rt)) {
    if (lt->kind == TY_ARRAY) {
      lt = array_to_ptr(lt);
      lhs = make_cast(lt, lhs->token, lhs, false);
    }
    if (rt->kind == TY_ARRAY) {
      rt = array_to_ptr(rt);
      rhs = make_cast(rt, rhs->token, rhs, false);
    }

    bool st;
    if (!((st = same_type_without_qualifier(lt, rt, true)) ||
          (lt->kind == TY_PTR && lt->pa.ptrof->kind == TY_VOID) ||
          (rt->kind == TY_PTR && rt->pa.ptrof->kind == TY_VOID) ||
          is_zero(rhs) || is_zero(lhs))) {
      enum ParseErrorLevel err = st || (lt->kind == TY_PTR && rt->kind == TY_PTR) ? PE_WARNING : PE_NOFATAL;
      parse_error(err, tok, "compare pointer to other types");
    }
    if (rt->kind != TY_PTR)
      rhs = make_cast(lhs->type, rhs->token, rhs, false);
    else if (lt->kind != TY_PTR)
      lhs = make_cast(rhs->type, lhs->token, lhs, false);
  }

  Expr *first = lhs;
  put_variable_last(&lhs, &rhs);
  if (lhs != first && kind > EX_NE)
    kind = (EX_GT + EX_LT) - kind;
  return new_expr_bop(kind, &tyBool, tok, lhs, rhs);
}

Expr *make_cond(Expr *expr) {
  switch (expr->kind) {
  case EX_FIXNUM:
    expr = new_expr_fixlit(&tyBool, expr->token, expr->fixnum != 0);
    break;
#ifndef __NO_FLONUM
  case EX_FLONUM:
    expr = new_expr_fixlit(&tyBool, expr->token, expr->flonum != 0);
    break;
#endif
  case EX_STR:
    expr = new_expr_fixlit(&tyBool, expr->token, true);
    break;
  case EX_EQ: case EX_NE: case EX_LT: case EX_LE: case EX_GE: case EX_GT:
  case EX_LOGAND: case EX_LOGIOR:
    break;
  case EX_COMMA:
    expr->bop.rhs = make_cond(expr->bop.rhs);
    expr->type = expr->bop.rhs->type;
    break;
  case EX_EXPECT:
    {
      expr->bop.lhs = make_cond(expr->bop.lhs);
      Type *type = expr->bop.lhs->type;  // Must be bool.
      expr->bop.rhs = make_cast(type, expr->bop.rhs->token, expr->bop.rhs, false);
      expr->type = type;
    }
    break;
  default:
    switch (expr->type->kind) {
    case TY_ARRAY:
    case TY_FUNC:
      expr = new_expr_fixlit(&tyBool, expr->token, true);
      break;
    default:
      expr = make_expr_cmp(
          EX_NE, expr->token, expr,
          make_cast(expr->type, expr->token, new_expr_fixlit(&tyInt, expr->token, 0), false));
      break;
    }
    break;
  }
  return expr;
}

Expr *make_not_expr(const Token *tok, Expr *expr) {
  Type *type = expr->type;
  assert(is_number(type) || ptr_or_array(type));
  if (type->kind == TY_ARRAY)
    type = array_to_ptr(type);
  Expr *zero;
#ifndef __NO_FLONUM
  if (is_flonum(type)) {
    zero = new_expr_flolit(type, tok, 0.0);
  } else
#endif
  {
    zero = new_expr_fixlit(type, tok, 0);
  }
  return make_expr_cmp(EX_EQ, tok, expr, zero);
}

static Expr *calc_assign_with(const Token *tok, Expr *lhs, Expr *rhs) {
  // Assume token-kind and expr-kind is same arrangement.
  return make_expr_num_bop(tok->kind + (EX_ADD - TK_ADD_ASSIGN), tok, lhs, rhs);
}

// Whether an expression changes something.
static bool has_effect(Expr *expr) {
  switch (expr->kind) {
  case EX_FIXNUM: case EX_FLONUM: case EX_STR: case EX_VAR:
    return false;
  case EX_POS: case EX_NEG: case EX_BITNOT:
  case EX_REF: case EX_DEREF: case EX_CAST:
    return has_effect(expr->unary.sub);
  case EX_MUL: case EX_DIV: case EX_MOD: case EX_LSHIFT: case EX_RSHIFT:
  case EX_ADD: case EX_SUB: case EX_BITAND: case EX_BITOR: case EX_BITXOR:
  case EX_EQ: case EX_NE: case EX_LT: case EX_LE: case EX_GE: case EX_GT: case EX_EXPECT:
  case EX_LOGAND: case EX_LOGIOR: case EX_COMMA:
    return has_effect(expr->bop.lhs) || has_effect(expr->bop.rhs);
  case EX_TERNARY:
    return has_effect(expr->ternary.cond) || has_effect(expr->ternary.tval) || has_effect(expr->ternary.fval);
  case EX_MEMBER:
    return has_effect(expr->member.target);
  default:
    return true;
  }
}

#ifndef __NO_BITFIELD
static Expr *transform_assign_with_bitfield(const Token *tok, Expr *lhs, Expr *rhs,
                                            const MemberInfo *member) {
  // (ptr = &unit, *ptr = with the value of *ptr and rhs, the new value)
  Expr *dst;
  Expr *result = bitfield_unit(tok, lhs, member, &dst);
  Expr *val = calc_assign_with(tok, extract_bitfield_value(dst, member), rhs);
  result = in_sequence(tok, result, assign_bitfield_member(tok, dst, dst, val, member));
  return in_sequence(tok, result, extract_bitfield_value(dst, member));
}
#endif

Expr *transform_assign_with(const Token *tok, Expr *lhs, Expr *rhs) {
  // Transform expression `lhs += rhs` to `lhs = lhs + rhs`.
  // If LHS is not a variable, add temporary variable to keep `&LHS` to avoid side effect.
  // Replace expression to (ptr = &lhs, *ptr = *ptr + rhs)
  if (has_effect(rhs) && is_prim_type(rhs->type)) {
    // No effect of RHS comes between reading and writing LHS: (tmp = rhs, lhs = lhs + tmp)
    Expr *tmp = alloc_tmp_var(curscope, rhs->type);
    Expr *assign = new_expr_bop(EX_ASSIGN, rhs->type, tok, tmp, rhs);
    Expr *result = transform_assign_with(tok, lhs, tmp);
    return new_expr_bop(EX_COMMA, result->type, tok, assign, result);
  }

  Expr *tmp_assign = NULL;
  if (lhs->kind != EX_VAR) {
#ifndef __NO_BITFIELD
    if (lhs->kind == EX_MEMBER) {
      const MemberInfo *member = lhs->member.info;
      if (member->bitfield.width > 0)
        return transform_assign_with_bitfield(tok, lhs, rhs, member);
    }
#endif

    Type *ptype = ptrof(lhs->type);
    assert(!is_global_scope(curscope));
    Expr *ptr = alloc_tmp_var(curscope, ptype);
    tmp_assign = new_expr_bop(EX_ASSIGN, ptype, tok, ptr, make_refer(lhs->token, lhs));
    lhs = new_expr_unary(EX_DEREF, lhs->type, lhs->token, ptr);
  }

  Expr *bop = calc_assign_with(tok, lhs, rhs);
  Expr *result = new_expr_bop(EX_ASSIGN, lhs->type, tok, lhs,
                              make_cast(lhs->type, tok, bop, false));

  return tmp_assign == NULL ? result
                            : new_expr_bop(EX_COMMA, result->type, tok, tmp_assign, result);
}

static Expr *unnest_arg(Expr *arg, Vector *unnested) {
  Type *type = arg->type;
  assert(type->kind != TY_VOID);
  Expr *tmp = alloc_tmp_var(curscope, type);
  Expr *assign = new_expr_bop(EX_ASSIGN, type, arg->token, tmp, arg);
  assert(assign->kind == EX_ASSIGN && assign->bop.lhs->kind == EX_VAR);
  vec_push(unnested, assign);
  return tmp;
}

// Whether the effects of other arguments cannot change a value, or change it in gcc, too.
static bool is_settled(Expr *arg) {
  switch (arg->kind) {
  case EX_FIXNUM: case EX_FLONUM: case EX_STR: case EX_REF:
    return true;
  case EX_VAR:
    return !is_prim_type(arg->type) || !is_global_scope(arg->var.scope);
  case EX_CAST:
    return arg->type->kind == TY_PTR && is_settled(arg->unary.sub);
  default:
    return false;
  }
}

// Arguments with an effect are computed before the call, from the last one to the first one, as in gcc on x86-64.
// Calls within arguments must be, as they use the same memory for their arguments.
Expr *simplify_funcall(Expr *funcall) {
  assert(funcall->kind == EX_FUNCALL);

  Vector *args = funcall->funcall.args;
  Vector *unnested = new_vector();
  if (has_effect(funcall->funcall.func))
    funcall->funcall.func = unnest_arg(funcall->funcall.func, unnested);
  int first = 0;  // The argument with an effect that is computed last.
  while (first < args->len && !has_effect(args->data[first]))
    ++first;
  for (int i = args->len; i-- > first; ) {
    Expr *arg = args->data[i];
    if (arg->type->kind != TY_VOID && (i == first || !is_settled(arg)))
      args->data[i] = unnest_arg(arg, unnested);
  }

  if (unnested->len > 0) {
    const Token *token = funcall->token;
    Expr *comma = unnested->data[0];
    for (int i = 1; i < unnested->len; ++i) {
      Expr *rhs = unnested->data[i];
      comma = new_expr_bop(EX_COMMA, rhs->type, token, comma, rhs);
    }
    funcall = new_expr_bop(EX_COMMA, funcall->type, token, comma, funcall);
  }
  free_vector(unnested);
  return funcall;
}
