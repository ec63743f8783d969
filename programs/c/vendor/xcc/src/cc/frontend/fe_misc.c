#include "../../config.h"
#include "fe_misc.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>  // exit
#include <string.h>

#include "ast.h"
#include "expr.h"
#include "initializer.h"
#include "lexer.h"
#include "table.h"
#include "type.h"
#include "util.h"
#include "var.h"

#define MAX_ERROR_COUNT  (25)

Function *curfunc;
Scope *curscope;
VarInfo *curvarinfo;
LoopScope loop_scope;

int compile_warning_count;
int compile_error_count;

CcFlags cc_flags = {
  .warn_as_error = false,
  .common = false,
  .optimize_level = 0,
};

typedef struct {
  const char *flag_name;
  off_t flag_offset;
} FlagTable;

static bool parse_flag_table(const char *optarg, bool value, const FlagTable *table, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const FlagTable *p = &table[i];
    if (strcmp(optarg, p->flag_name) == 0) {
      size_t len = strlen(p->flag_name);
      if (optarg[len] != '\0')
        continue;
      bool *b = (bool*)((char*)&cc_flags + p->flag_offset);
      *b = value;
      return true;
    }
  }
  return false;
}

bool parse_fopt(const char *optarg, bool value) {
  static const FlagTable kFlagTable[] = {
    {"common", offsetof(CcFlags, common)},
  };
  return parse_flag_table(optarg, value, kFlagTable, ARRAY_SIZE(kFlagTable));
}

bool parse_wopt(const char *optarg, bool value) {
  static const FlagTable kFlagTable[] = {
    {"unused-variable", offsetof(CcFlags, warn.unused_variable)},
    {"unused-function", offsetof(CcFlags, warn.unused_function)},
  };
  return parse_flag_table(optarg, value, kFlagTable, ARRAY_SIZE(kFlagTable));
}

void parse_error(enum ParseErrorLevel level, const Token *token, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (fmt != NULL) {
    if (token == NULL)
      token = fetch_token();
    if (token->line != NULL) {
      fprintf(stderr, "%s(%d): ", token->line->filename, token->line->lineno);
    }

    if (level == PE_WARNING && !cc_flags.warn_as_error)
      fprintf(stderr, "warning: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
  }

  if (token != NULL && token->line != NULL && token->begin != NULL)
    show_error_line(token->line->buf, token->begin, token->end - token->begin);
  va_end(ap);

  if (level == PE_WARNING) {
    ++compile_warning_count;
  } else {
    ++compile_error_count;
    if (/*level == PE_FATAL ||*/ compile_error_count >= MAX_ERROR_COUNT)
      exit(1);
  }
}

bool not_void(const Type *type, const Token *token) {
  if (type->kind != TY_VOID)
    return true;
  parse_error(PE_NOFATAL, token, "`void' not allowed");
  return false;
}

void not_const(const Type *type, const Token *token) {
  if (type->qualifier & TQ_CONST)
    parse_error(PE_NOFATAL, token, "cannot modify `const'");
}

const enum FixnumKind kLongKinds[] = {
  FX_INT, FX_LONG, FX_LLONG,
};

void check_type_combination(const TypeCombination *tc, const Token *tok) {
  if (tc->unsigned_num > 1 || tc->signed_num > 1 ||
      tc->char_num > 1 || tc->short_num > 1 || tc->int_num > 1 ||
      tc->long_num >= (int)ARRAY_SIZE(kLongKinds) ||
      ((tc->char_num > 0) + (tc->short_num > 0) + (tc->long_num > 0) > 1) ||
      tc->float_num > 1 || tc->double_num > 1 ||
      ((tc->float_num > 0 || tc->double_num > 0) &&
       (tc->char_num > 0 || tc->short_num > 0 || tc->int_num > 0 || tc->long_num > 0 ||
        tc->unsigned_num > 0 || tc->signed_num > 0) &&
       !(tc->double_num == 1 && tc->float_num <= 0 && tc->long_num <= 1 &&
         tc->char_num <= 0 && tc->short_num <= 0 && tc->int_num <= 0 &&
         tc->unsigned_num <= 0 && tc->signed_num <= 0)
      )
  ) {
    parse_error(PE_NOFATAL, tok, "illegal type combination");
  }
}

bool no_type_combination(const TypeCombination *tc, int storage_mask, int qualifier_mask) {
  return tc->unsigned_num == 0 && tc->signed_num == 0 && tc->char_num == 0 && tc->short_num == 0 &&
         tc->int_num == 0 && tc->long_num == 0 && (tc->storage & storage_mask) == 0 &&
         (tc->qualifier & qualifier_mask) == 0 && tc->float_num == 0 && tc->double_num == 0;
}

static VarInfo *find_var_from_scope(Scope *scope, const Token *ident, Type *type, int storage,
                                    bool allow_defined) {
  assert(ident != NULL);
  const Name *name = ident->ident;
  assert(name != NULL);
  int idx = var_find(scope->vars, name);
  if (idx >= 0) {
    VarInfo *varinfo = scope->vars->data[idx];
    if (!same_type(type, varinfo->type)) {
      parse_error(PE_NOFATAL, ident, "`%.*s' type conflict", NAMES(name));
    } else if (!(storage & VS_EXTERN)) {
      if (varinfo->storage & VS_EXTERN) {
        varinfo->storage &= ~VS_EXTERN;
      } else if (is_global_scope(scope) && varinfo->global.init == NULL) {
        ;  // Ignore variable duplication if predecessor doesn't have initializer.
      } else {
        if (!allow_defined)
          parse_error(PE_NOFATAL, ident, "`%.*s' already defined", NAMES(name));
      }
    }
    return varinfo;
  }
  return NULL;
}

VarInfo *add_var_to_scope(Scope *scope, const Token *ident, Type *type, int storage,
                          bool allow_defined) {
  VarInfo *varinfo = find_var_from_scope(scope, ident, type, storage, allow_defined);
  if (varinfo != NULL)
    return varinfo;

  // Check conflict with typedef
  if (scope->typedef_table != NULL && table_try_get(scope->typedef_table, ident->ident, NULL))
    parse_error(PE_NOFATAL, ident, "conflict with typedef");

  return scope_add(scope, ident, type, storage);
}

Token *alloc_dummy_ident(void) {
  const Name *label = alloc_label();
  return alloc_ident(label, NULL, label->chars, label->chars + label->bytes);
}

Expr *alloc_tmp_var(Scope *scope, Type *type) {
  const Token *ident = alloc_dummy_ident();
  // No need to use `add_var_to_scope`, because `name` must be unique.
  const Name *name = ident->ident;
  scope_add(scope, ident, type, VS_USED);
  return new_expr_variable(name, type, ident, scope);
}

void define_enum_member(Type *type, const Token *ident, int value) {
  VarInfo *varinfo = add_var_to_scope(curscope, ident, type, VS_ENUM_MEMBER, false);
  varinfo->enum_member.value = value;
}

Expr *proc_builtin_function_name(const Token *tok) {
  if (curfunc == NULL) {
    parse_error(PE_NOFATAL, tok, "must be inside function");
    static const char nulstr[] = "";
    return string_expr(tok, strdup(nulstr), 0, STR_CHAR);
  }

  // Make nul-terminated function name.
  const Name *name = curfunc->ident->ident;
  size_t len = name->bytes;
  char *str = malloc_or_die(len + 1);
  memcpy(str, name->chars, len);
  str[len] = '\0';
  return string_expr(tok, str, len + 1, STR_CHAR);
}

Scope *enter_scope(Function *func) {
  Scope *scope = new_scope(curscope);
  curscope = scope;
  vec_push(func->scopes, scope);
  return scope;
}

void exit_scope(void) {
  assert(!is_global_scope(curscope));
  curscope = curscope->parent;
}

// Call before accessing struct member to ensure that struct is declared.
bool ensure_type_info(Type *type, const Token *token, Scope *scope, bool raise_error) {
  switch (type->kind) {
  case TY_FIXNUM:
    if (type->fixnum.kind == FX_ENUM && type->fixnum.enum_.info == NULL) {
      assert(type->fixnum.enum_.tagname != NULL);
      Scope *scope2;
      EnumInfo *einfo = find_enum(scope, type->fixnum.enum_.tagname, &scope2);
      if (einfo == NULL && (raise_error || scope2 == NULL)) {
        parse_error(raise_error ? PE_NOFATAL : PE_WARNING, token, "incomplete enum: `%.*s'",
                    NAMES(type->fixnum.enum_.tagname));
        return false;
      }
      type->fixnum.enum_.info = einfo;
    }
    break;
  case TY_STRUCT:
    if (type->struct_.info == NULL) {
      StructInfo *sinfo = find_struct(scope, type->struct_.name, NULL);
      if (sinfo == NULL) {
        parse_error(raise_error ? PE_NOFATAL : PE_WARNING, token, "incomplete struct: `%.*s'",
                    NAMES(type->struct_.name));
        return false;
      }
      type->struct_.info = sinfo;
    }
    break;
  case TY_ARRAY:
    return ensure_type_info(type->pa.ptrof, token, scope, raise_error);
  default:
    break;
  }
  return true;
}

bool check_cast(const Type *dst, const Type *src, bool zero, bool is_explicit, const Token *token) {
  bool ok = can_cast(dst, src, zero, is_explicit);
  if (!ok || dst->kind == TY_ARRAY) {
    if (token == NULL)
      token = fetch_token();
    fprintf(stderr, "%s(%d): ", token->line->filename, token->line->lineno);

    enum ParseErrorLevel level = PE_WARNING;
    if (dst->kind == TY_ARRAY || !is_prim_type(dst) ||
        !(is_prim_type(src) || (src->kind == TY_ARRAY && dst->kind == TY_PTR)))
      level = PE_NOFATAL;
    else if (!cc_flags.warn_as_error)
      fprintf(stderr, "warning: ");
    fprintf(stderr, "convert value from type `");
    print_type(stderr, src);
    fprintf(stderr, "' to %s`", dst->kind == TY_ARRAY ? "array type " : "");
    print_type(stderr, dst);
    fprintf(stderr, "'\n");
    parse_error(level, token, NULL);
    return false;
  }
  return true;
}

const MemberInfo *search_from_anonymous(const Type *type, const Name *name, const Token *ident,
                                        Vector *stack) {
  assert(type->kind == TY_STRUCT);
  const StructInfo *sinfo = type->struct_.info;
  for (int i = 0, len = sinfo->member_count; i < len; ++i) {
    const MemberInfo *member = &sinfo->members[i];
    if (member->name != NULL) {
      if (equal_name(member->name, name)) {
        vec_push(stack, INT2VOIDP(i));
        return member;
      }
    } else if (member->type->kind == TY_STRUCT) {
      vec_push(stack, INT2VOIDP(i));
      const MemberInfo *submember = search_from_anonymous(member->type, name, ident, stack);
      if (submember != NULL)
        return submember;
      vec_pop(stack);
    }
  }
  return NULL;
}

static void mark_var_used_sub(Expr *expr, bool for_func) {
  VarInfo *gvarinfo = NULL;

  switch (expr->kind) {
  case EX_VAR:
    {
      Scope *scope = NULL;
      VarInfo *varinfo = scope_find(expr->var.scope, expr->var.name, &scope);
      assert(varinfo != NULL);
      if (is_global_scope(scope)) {
        gvarinfo = varinfo;

        const Type *type = varinfo->type;
        if (type->kind == TY_FUNC && !for_func) {
          varinfo->storage |= VS_REF_TAKEN;
        }
      } else {
        varinfo->storage |= VS_USED;
        if (varinfo->storage & VS_STATIC)
          gvarinfo = varinfo->static_.svar;
      }
    }
    break;
  case EX_COMPLIT:
    mark_var_used_sub(expr->complit.var, false);
    break;
  case EX_ASSIGN:
    mark_var_used_sub(expr->bop.lhs, false);
    break;
  default: break;
  }

  if (gvarinfo != NULL && curvarinfo != NULL) {
    Vector *refs = curvarinfo->global.referred_globals;
    if (refs == NULL)
      curvarinfo->global.referred_globals = refs = new_vector();
    vec_push(refs, gvarinfo);
  }
}

void mark_var_used(Expr *expr) {
  mark_var_used_sub(expr, false);
}

Expr *used_as_value_for_func(Expr *expr, bool for_func) {
  ensure_type_info(expr->type, expr->token, curscope, true);

  mark_var_used_sub(expr, for_func);
#ifndef __NO_BITFIELD
  switch (expr->kind) {
  case EX_MEMBER:
    {
      const MemberInfo *member = expr->member.info;
      if (member->bitfield.width > 0) {
        Type *type = get_fixnum_type(member->bitfield.base_kind, true, 0);
        Expr *ptr = make_cast(ptrof(type), expr->token, make_refer(expr->token, expr), true);
        Expr *load = new_expr_deref(NULL, ptr);
        return extract_bitfield_value(load, member);
      }
    }
    break;
  default: break;
  }
#endif
  return expr;
}

void propagate_var_used(void) {
  Table used, unused;
  table_init(&used);
  table_init(&unused);
  Vector unchecked;
  vec_init(&unchecked);

  const Name *constructor_name = alloc_cname("constructor");
  const Name *destructor_name = alloc_cname("destructor");

  // Collect public functions into unchecked.
  for (int i = 0; i < global_scope->vars->len; ++i) {
    VarInfo *varinfo = global_scope->vars->data[i];
    const Type *type = varinfo->type;
    if (type->kind == TY_FUNC) {
      Function *func = varinfo->global.func;
      if (func == NULL)  // Prototype definition
        continue;
      if (((varinfo->storage & VS_STATIC) ||
           (varinfo->storage & (VS_INLINE | VS_EXTERN)) == VS_INLINE) &&
          (func->attributes == NULL ||
           (!table_try_get(func->attributes, constructor_name, NULL) &&
            !table_try_get(func->attributes, destructor_name, NULL)))) {
        if (!(varinfo->storage & VS_INLINE))
          table_put(&unused, varinfo->ident->ident, varinfo);
        continue;
      }
    } else {
      if (varinfo->storage & (VS_STATIC | VS_EXTERN | VS_ENUM_MEMBER)) {
        if (varinfo->storage & VS_STATIC)
          table_put(&unused, varinfo->ident->ident, varinfo);
        continue;
      }
    }
    vec_push(&unchecked, varinfo);
  }

  // Propagate usage.
  while (unchecked.len > 0) {
    VarInfo *varinfo = vec_pop(&unchecked);
    if (table_try_get(&used, varinfo->ident->ident, NULL))
      continue;
    table_put(&used, varinfo->ident->ident, NULL);
    table_delete(&unused, varinfo->ident->ident);
    varinfo->storage |= VS_USED;

    Vector *refs = varinfo->global.referred_globals;
    if (refs == NULL)
      continue;
    for (int j = 0; j < refs->len; ++j) {
      VarInfo *ref = refs->data[j];
      vec_push(&unchecked, ref);
    }
  }

  const Name *name;
  VarInfo *varinfo;
  for (int it = 0; (it = table_iterate(&unused, it, &name, (void**)&varinfo)) != -1; ) {
    if (varinfo->type->kind == TY_FUNC) {
      if (cc_flags.warn.unused_function)
        parse_error(PE_WARNING, varinfo->ident, "unused function: `%.*s'", NAMES(name));
    } else {
      if (cc_flags.warn.unused_variable)
        parse_error(PE_WARNING, varinfo->ident, "unused variable: `%.*s'", NAMES(name));
    }
  }
}

void check_lval(const Token *tok, Expr *expr, const char *error) {
  switch (expr->kind) {
  case EX_VAR:
  case EX_DEREF:
  case EX_MEMBER:
    break;
  default:
    parse_error(PE_NOFATAL, tok, error);
    break;
  }
}

#ifndef __NO_BITFIELD
void not_bitfield_member(Expr *expr) {
  if (expr->kind == EX_MEMBER) {
    const MemberInfo *member = expr->member.info;
    if (member->bitfield.active)
      parse_error(PE_NOFATAL, expr->token, "cannot get size for bitfield");
  }
}
#endif

bool is_small_struct(const Type *type) {
  if (type->kind != TY_STRUCT)
    return false;
  const StructInfo *sinfo = type->struct_.info;
  assert(sinfo != NULL);
  if (sinfo->flag & SIF_FLEXIBLE)
    return false;

#if XCC_TARGET_ARCH == XCC_ARCH_WASM
  // In WASM, only single-element struct is considered as small struct.
  if ((sinfo->flag & SIF_UNION) || sinfo->member_count != 1)
    return false;
  const MemberInfo *member = &sinfo->members[0];
  return type_size(type) == type_size(member->type) && (is_prim_type(member->type) || is_small_struct(member->type));
#else
  return type_size(type) <= TARGET_POINTER_SIZE * 2;
#endif
}

bool is_phantom_struct(const Type *type) {
  return type->kind == TY_STRUCT && type_size(type) == 0;
}

void check_funcall_args(Expr *func, Vector *args, Scope *scope) {
  Type *functype = get_callee_type(func->type);
  if (functype == NULL)
    return;

  const Vector *types = functype->func.params;  // <Type*>
  bool vaargs = functype->func.vaargs;
  if (types != NULL) {
    int argc = args->len;
    int paramc = types->len;
    if (!(argc == paramc || (vaargs && argc >= paramc))) {
      parse_error(PE_NOFATAL, func->token, "function `%.*s' expect %d arguments, but %d",
                  NAMES(func->var.name), paramc, argc);
      return;
    }
  }

  int paramc = types != NULL ? types->len : 0;
  for (int i = 0, len = args->len; i < len; ++i) {
    Expr *arg = args->data[i];
    arg = str_to_char_array_var(scope, arg);
    if (arg->type->kind == TY_ARRAY)
      arg = make_cast(array_to_ptr(arg->type), arg->token, arg, false);
    if (i < paramc) {
      Type *type = types->data[i];
      if (!ensure_type_info(type, arg->token, scope, true))
        continue;
      if (type->kind == TY_ARRAY)
        type = array_to_ptr(type);  // Needed for VLA.
      arg = make_cast(type, arg->token, arg, false);

      if (type->kind == TY_STRUCT) {
        assert(type->struct_.info != NULL);
        if (type->struct_.info->flag & SIF_FLEXIBLE)
          parse_error(PE_NOFATAL, arg->token, "flexible array as an argument not allowed");
      }
    } else if (vaargs && i >= paramc) {
      Type *type = arg->type;
      switch (type->kind) {
      case TY_FIXNUM:
        // Each integer has a slot of 8 bytes, so that `%lu` reads a `size_t`.
        arg = promote_to_int(arg);
        arg = make_cast(get_fixnum_type(FX_LLONG, arg->type->fixnum.is_unsigned, 0), arg->token, arg, false);
        break;
      case TY_FLONUM:
        if (type->flonum.kind < FL_DOUBLE)  // Promote variadic argument.
          arg = make_cast(&tyDouble, arg->token, arg, false);
        break;
      default: break;
      }
    }
    args->data[i] = arg;
  }
}

Vector *extract_varinfo_types(const Vector *vars) {
  Vector *types = NULL;
  if (vars != NULL) {
    types = new_vector();
    for (int i = 0, len = vars->len; i < len; ++i)
      vec_push(types, ((VarInfo*)vars->data[i])->type);
  }
  return types;
}

static Type *to_ptr_type(Type *type) {
  switch (type->kind) {
  case TY_ARRAY: return array_to_ptr(type);
  case TY_FUNC:  return ptrof(type);
  default:  return type;
  }
}

static Type *apply_ptr_qualifier(Type *type, Type *ptype) {
  assert(type->kind == TY_PTR);
  assert(ptype->kind == TY_PTR);
  Type *dtype = qualified_type(type->pa.ptrof, ptype->pa.ptrof->qualifier & TQ_CONST);
  if (dtype != type->pa.ptrof)
    type = ptrof(dtype);
  return type;
}

Type *choose_ternary_result_type(Expr *tval, Expr *fval) {
  Type *ttype = tval->type;
  Type *ftype = fval->type;

  if (ttype->kind == TY_VOID || ftype->kind == TY_VOID)
    return &tyVoid;

  ttype = to_ptr_type(ttype);
  ftype = to_ptr_type(ftype);

  if (ftype->kind == TY_ARRAY)
    ftype = array_to_ptr(ftype);

  if (same_type(ttype, ftype))
    return ttype;
  if (ttype->kind == TY_PTR) {
    if (ftype->kind == TY_PTR) {  // Both pointer type
      if (same_type_without_qualifier(ttype, ftype, true)) {
        if (ftype->pa.ptrof->qualifier & TQ_CONST)
          return ftype;
        return ttype;
      }
      if (is_void_ptr(ttype))
        return apply_ptr_qualifier(ftype, ttype);
      if (is_void_ptr(ftype))
        return apply_ptr_qualifier(ttype, ftype);
    } else {
      if (can_cast(ttype, ftype, is_zero(fval), false))
        return ttype;
    }
  } else if (ftype->kind == TY_PTR) {
    return choose_ternary_result_type(fval, tval);  // Make ttype to pointer, and check again.
  } else if (is_number(ttype) && is_number(ftype)) {
    return arithmetic_type(ttype, ftype);
  }
  return NULL;
}

//

static void check_reachability_stmt(Stmt *stmt);

static int check_reachability_stmts(Vector *stmts) {
  assert(stmts != NULL);
  int reach = 0;
  for (int i = 0, n = stmts->len; i < n; ++i) {
    Stmt *stmt = stmts->data[i];
    if (reach & REACH_STOP) {
      if (!(stmt->kind == ST_LABEL || stmt->kind == ST_CASE))
        continue;
      reach = 0;
    }
    check_reachability_stmt(stmt);
    reach |= stmt->reach;
    if (reach & REACH_STOP) {
      for (; i < n - 1; ++i) {
        Stmt *next = stmts->data[i + 1];
        if ((next->kind == ST_BREAK && next->break_.target->kind == ST_SWITCH) &&
            (stmt->kind != ST_RETURN && stmt->kind != ST_BREAK))
          continue;
        switch (next->kind) {
        case ST_LABEL:
        case ST_CASE:
          break;

        // Avoid false positive:
        case ST_WHILE: case ST_DO_WHILE:
          // TODO: Check the loop is jumped inside from other place using `goto` statement.
          break;
        case ST_FOR:
          if (next->for_.pre == NULL)
            break;
          // Fallthrough

        default:
          parse_error(PE_WARNING, next->token, "unreachable");
          break;
        }
        break;
      }
    }
  }
  return reach;
}

static void check_unreachability(Stmt *stmt) {
  if (stmt == NULL)
    return;
  switch (stmt->kind) {
  case ST_EMPTY:
    return;
  case ST_BLOCK:
    if (stmt->block.stmts->len == 0)
      return;
    stmt = stmt->block.stmts->data[0];
    break;
  default:
    break;
  }
  parse_error(PE_WARNING, stmt->token, "unreachable");
}

void check_unused_variables(Function *func) {
  for (int i = 0; i < func->scopes->len; ++i) {
    Scope *scope = func->scopes->data[i];
    for (int j = 0; j < scope->vars->len; ++j) {
      VarInfo *varinfo = scope->vars->data[j];
      if (!(varinfo->storage & (VS_USED | VS_ENUM_MEMBER | VS_EXTERN)) && varinfo->ident != NULL) {
        parse_error(PE_WARNING, varinfo->ident, "unused variable `%.*s'",
                    NAMES(varinfo->ident->ident));
      }
    }
  }
}

static void check_reachability_stmt(Stmt *stmt) {
  if (stmt == NULL)
    return;
  switch (stmt->kind) {
  case ST_IF:
    {
      check_reachability_stmt(stmt->if_.tblock);
      check_reachability_stmt(stmt->if_.fblock);
      int reach = 0;
      if (is_const_truthy(stmt->if_.cond)) {
        reach = stmt->if_.tblock->reach;
      } else if (stmt->if_.fblock != NULL) {
        reach = stmt->if_.fblock->reach;
        if (!is_const_falsy(stmt->if_.cond))
          reach = stmt->if_.tblock->reach & reach;
      }
      stmt->reach = reach;
    }
    break;
  case ST_SWITCH:
    stmt->reach = (stmt->reach & ~REACH_STOP) |
                  ((stmt->switch_.default_ != NULL) ? REACH_STOP : 0);
    check_reachability_stmt(stmt->switch_.body);
    stmt->reach &= stmt->switch_.body->reach;
    break;
  case ST_WHILE:
    if (is_const_truthy(stmt->while_.cond))
      stmt->reach |= REACH_STOP;
    if (is_const_falsy(stmt->while_.cond))
      check_unreachability(stmt->while_.body);
    else
      check_reachability_stmt(stmt->while_.body);
    break;
  case ST_DO_WHILE:
    if (is_const_truthy(stmt->while_.cond))
      stmt->reach |= REACH_STOP;
    check_reachability_stmt(stmt->while_.body);
    stmt->reach |= stmt->while_.body->reach;
    break;
  case ST_FOR:
    if (stmt->for_.cond != NULL && is_const_falsy(stmt->for_.cond)) {
      check_unreachability(stmt->for_.body);
    } else {
      if (stmt->for_.cond == NULL || is_const_truthy(stmt->for_.cond))
        stmt->reach |= REACH_STOP;
      check_reachability_stmt(stmt->for_.body);
    }
    break;
  case ST_BLOCK:
#if XCC_TARGET_ARCH == XCC_ARCH_WASM
  case ST_BLOCK_FOR_LABEL:
#endif
    stmt->reach = check_reachability_stmts(stmt->block.stmts);  // Assume block_for_label.stmts is same place.
    break;
  case ST_LABEL:
    check_reachability_stmt(stmt->label.stmt);
    stmt->reach = stmt->label.stmt->reach;
    break;
  case ST_RETURN:
    stmt->reach |= REACH_RETURN | REACH_STOP;
    break;
  case ST_BREAK:
    stmt->break_.target->reach &= ~REACH_STOP;
    stmt->reach |= REACH_STOP;
    break;
  case ST_CASE:
    check_reachability_stmt(stmt->case_.stmt);
    stmt->reach = stmt->case_.stmt->reach;
    break;
  case ST_GOTO:
    // TODO:
    stmt->reach |= REACH_STOP;
    break;
  case ST_CONTINUE:
    stmt->reach |= REACH_STOP;
    break;
  case ST_EXPR:
    {
      // Lazily, check noreturn function call only top of the expression statement.
      Expr *expr = stmt->expr;
      if (expr->kind == EX_FUNCALL) {
        Expr *fexpr = expr->funcall.func;
        if (fexpr->kind == EX_VAR && is_global_scope(fexpr->var.scope)) {
          VarInfo *varinfo = scope_find(fexpr->var.scope, fexpr->var.name, NULL);
          assert(varinfo != NULL);
          Declaration *decl = varinfo->global.funcdecl;
          if (decl != NULL) {
            assert(decl->kind == DCL_DEFUN && decl->defun.func != NULL);
            if (decl->defun.func->flag & FUNCF_NORETURN) {
              stmt->reach |= REACH_STOP;
            }
          }
        }
      }
    }
    break;
  case ST_EMPTY: case ST_VARDECL: case ST_ASM:
    stmt->reach = 0;
    break;
  }
}

static bool check_func_return(Function *func) {
  Type *type = func->type;
  Type *rettype = type->func.ret;
  const Token *rbrace = func->body_block->block.rbrace;

  static const Name *main_name;
  if (main_name == NULL)
    main_name = alloc_cname("main");
  if (equal_name(func->ident->ident, main_name)) {
    if (rettype->kind == TY_VOID) {
      // Force return type to `int' for `main' function.
      type->func.ret = rettype = &tyInt;
    }
  }

  bool result = true;
  if (func->flag & FUNCF_NORETURN) {
    if (rettype->kind != TY_VOID) {
      parse_error(PE_WARNING, rbrace, "`noreturn' function should not return value");
    } else if (!(func->body_block->reach & REACH_STOP)) {
      Vector *stmts = func->body_block->block.stmts;
      if (stmts->len == 0 || ((Stmt*)stmts->data[stmts->len - 1])->kind != ST_ASM) {
        parse_error(PE_WARNING, rbrace, "`noreturn' function should not return");
      }
    }
  } else if (rettype->kind != TY_VOID && !(func->body_block->reach & REACH_STOP)) {
    Vector *stmts = func->body_block->block.stmts;
    if (stmts->len == 0 || ((Stmt*)stmts->data[stmts->len - 1])->kind != ST_ASM) {
      if (equal_name(func->ident->ident, main_name)) {
        assert(rettype->kind == TY_FIXNUM && rettype->fixnum.kind == FX_INT);
        vec_push(stmts, new_stmt_return(NULL, new_expr_fixlit(rettype, NULL, 0)));
        func->body_block->reach |= REACH_RETURN;
      } else {
        parse_error(PE_WARNING, rbrace, "`return' required");
        result = false;
      }
    }
  }
  return result;
}

void check_func_reachability(Function *func) {
  check_reachability_stmt(func->body_block);
  check_func_return(func);  // The code's end returns a zero.
}

bool check_funcend_return(Stmt *stmt) {
  assert(stmt != NULL);
  return stmt->reach & REACH_RETURN;
}

//

bool satisfy_inline_criteria(const VarInfo *varinfo) {
  // Calls stay calls: what is duplicated is not always what was written.
  return false;
  // TODO: Check complexity or length of function body statements.
  const Type *type = varinfo->type;
  if (type->kind == TY_FUNC && (varinfo->storage & VS_INLINE) && !type->func.vaargs) {
    Function *func = varinfo->global.func;
    if (func != NULL) {
      // Self-recursion or mutual recursion are prevented,
      // because some inline function must not be defined at funcall point.
      return func->body_block != NULL && func->label_table == NULL;
    }
  }
  return false;
}

static Stmt *duplicate_inline_function_stmt(Function *targetfunc, Scope *targetscope, Stmt *stmt);
static Expr *duplicate_inline_function_expr(Function *targetfunc, Scope *targetscope, Expr *expr);

static Expr *dup_expr_literal(Function *targetfunc, Scope *targetscope, Expr *expr) {
  UNUSED(targetfunc);
  UNUSED(targetscope);
  return expr;
}

static Expr *dup_expr_var(Function *targetfunc, Scope *targetscope, Expr *expr) {
  if (is_global_scope(expr->var.scope))
    return expr;

  const Name *name = expr->var.name;
  VarInfo *varinfo = scope_find(expr->var.scope, name, NULL);
  if (varinfo->storage & (VS_EXTERN | VS_ENUM_MEMBER)) {
    // No need to duplicate.
    return expr;
  }

  // Detect relative scope.
  Scope *scope = curscope;
  for (Scope *p = targetscope; !is_global_scope(p); p = p->parent, scope = scope->parent) {
    if (expr->var.scope == p)
      break;
  }
  if (varinfo->storage & VS_PARAM) {
    // Assume parameters are stored in top scope in order.
    Vector *top_scope_vars = ((Scope*)targetfunc->scopes->data[0])->vars;
    int i;
    for (i = 0; i < top_scope_vars->len; ++i) {
      VarInfo *vi = top_scope_vars->data[i];
      if (vi == varinfo)
        break;
    }
    assert(i < top_scope_vars->len);
    // Rename.
    assert(i < scope->vars->len);
    name = ((VarInfo*)scope->vars->data[i])->ident->ident;
  }
  return new_expr_variable(name, varinfo->type, expr->token, scope);
}

static Expr *dup_expr_bop(Function *targetfunc, Scope *targetscope, Expr *expr) {
  Expr *lhs = duplicate_inline_function_expr(targetfunc, targetscope, expr->bop.lhs);
  Expr *rhs = duplicate_inline_function_expr(targetfunc, targetscope, expr->bop.rhs);
  return new_expr_bop(expr->kind, expr->type, expr->token, lhs, rhs);
}

static Expr *dup_expr_unary(Function *targetfunc, Scope *targetscope, Expr *expr) {
  Expr *sub = duplicate_inline_function_expr(targetfunc, targetscope, expr->unary.sub);
  return new_expr_unary(expr->kind, expr->type, expr->token, sub);
}

static Expr *dup_expr_ternary(Function *targetfunc, Scope *targetscope, Expr *expr) {
  Expr *cond = duplicate_inline_function_expr(targetfunc, targetscope, expr->ternary.cond);
  Expr *tval = duplicate_inline_function_expr(targetfunc, targetscope, expr->ternary.tval);
  Expr *fval = duplicate_inline_function_expr(targetfunc, targetscope, expr->ternary.fval);
  return new_expr_ternary(expr->token, cond, tval, fval, expr->type);
}

static Expr *dup_expr_member(Function *targetfunc, Scope *targetscope, Expr *expr) {
  Expr *target = duplicate_inline_function_expr(targetfunc, targetscope, expr->member.target);
  return new_expr_member(expr->token, expr->type, target, expr->member.ident,
                         expr->member.info);
}

static Expr *dup_expr_funcall(Function *targetfunc, Scope *targetscope, Expr *expr) {
  Expr *func = duplicate_inline_function_expr(targetfunc, targetscope, expr->funcall.func);
  Vector *args = new_vector();
  Vector *src_args = expr->funcall.args;
  for (int i = 0; i < src_args->len; ++i) {
    Expr *arg = src_args->data[i];
    vec_push(args, duplicate_inline_function_expr(targetfunc, targetscope, arg));
  }
  return new_expr_funcall(expr->token, get_callee_type(func->type), func, args);
}

static Expr *dup_expr_inlined(Function *targetfunc, Scope *targetscope, Expr *expr) {
  Vector *args = new_vector();
  Vector *src_args = expr->inlined.args;
  for (int i = 0; i < src_args->len; ++i) {
    Expr *arg = src_args->data[i];
    vec_push(args, duplicate_inline_function_expr(targetfunc, targetscope, arg));
  }

  // Duplicate from original to receive function parameters correctly.
  VarInfo *varinfo = scope_find(global_scope, expr->inlined.funcname, NULL);
  assert(varinfo != NULL);
  assert(satisfy_inline_criteria(varinfo));
  return new_expr_inlined(expr->token, varinfo->ident->ident, expr->type, args,
                          embed_inline_funcall(varinfo));
}

static Expr *dup_expr_complit(Function *targetfunc, Scope *targetscope, Expr *expr) {
  Vector *inits = new_vector();
  Vector *src_inits = expr->complit.inits;
  for (int i = 0; i < src_inits->len; ++i) {
    Stmt *stmt = duplicate_inline_function_stmt(targetfunc, targetscope, src_inits->data[i]);
    vec_push(inits, stmt);
  }

  // Refer duplicated local variable.
  const Expr *org_var = expr->complit.var;
  assert(org_var->kind == EX_VAR);
#if !defined(NDEBUG)
  // Variable for complit must be in current scope.
  Scope *scope;
  VarInfo *varinfo = scope_find(curscope, org_var->var.name, &scope);
  assert(varinfo != NULL);
  assert(scope == curscope);
#else
  Scope *scope = curscope;
#endif
  Expr *var = new_expr_variable(org_var->var.name, org_var->type, expr->token, scope);
  return new_expr_complit(expr->type, expr->token, var, inits, expr->complit.original_init);
}

static Expr *dup_expr_block(Function *targetfunc, Scope *targetscope, Expr *expr) {
  Stmt *block = duplicate_inline_function_stmt(targetfunc, targetscope, expr->block);
  return new_expr_block(block);
}

static Expr *duplicate_inline_function_expr(Function *targetfunc, Scope *targetscope, Expr *expr) {
  if (expr == NULL)
    return NULL;

  typedef Expr *(*DuplicateExpr)(Function*, Scope*, Expr*);
  static const DuplicateExpr table[] = {
    [EX_FIXNUM] = dup_expr_literal, [EX_FLONUM] = dup_expr_literal,
    [EX_STR] = dup_expr_literal,

    [EX_VAR] = dup_expr_var,

    [EX_ADD] = dup_expr_bop, [EX_SUB] = dup_expr_bop,
    [EX_MUL] = dup_expr_bop, [EX_DIV] = dup_expr_bop, [EX_MOD] = dup_expr_bop,
    [EX_BITAND] = dup_expr_bop, [EX_BITOR] = dup_expr_bop, [EX_BITXOR] = dup_expr_bop,
    [EX_LSHIFT] = dup_expr_bop, [EX_RSHIFT] = dup_expr_bop,
    [EX_EQ] = dup_expr_bop, [EX_NE] = dup_expr_bop,
    [EX_LT] = dup_expr_bop, [EX_LE] = dup_expr_bop, [EX_GE] = dup_expr_bop, [EX_GT] = dup_expr_bop,
    [EX_LOGAND] = dup_expr_bop, [EX_LOGIOR] = dup_expr_bop,
    [EX_ASSIGN] = dup_expr_bop, [EX_COMMA] = dup_expr_bop, [EX_EXPECT] = dup_expr_bop,

    [EX_POS] = dup_expr_unary, [EX_NEG] = dup_expr_unary, [EX_BITNOT] = dup_expr_unary,
    [EX_PREINC] = dup_expr_unary, [EX_PREDEC] = dup_expr_unary,
    [EX_POSTINC] = dup_expr_unary, [EX_POSTDEC] = dup_expr_unary,
    [EX_REF] = dup_expr_unary, [EX_DEREF] = dup_expr_unary, [EX_CAST] = dup_expr_unary,

    [EX_TERNARY] = dup_expr_ternary,
    [EX_MEMBER] = dup_expr_member,
    [EX_FUNCALL] = dup_expr_funcall,
    [EX_INLINED] = dup_expr_inlined,
    [EX_COMPLIT] = dup_expr_complit,
    [EX_BLOCK] = dup_expr_block,
  };
  assert(expr->kind < (int)ARRAY_SIZE(table));
  assert(table[expr->kind] != NULL);
  return (*table[expr->kind])(targetfunc, targetscope, expr);
}

static Stmt *dup_stmt_empty(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  UNUSED(targetfunc);
  UNUSED(targetscope);
  return stmt;
}
#define dup_stmt_goto  dup_stmt_empty

static Stmt *dup_stmt_expr(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  Expr *expr = duplicate_inline_function_expr(targetfunc, targetscope, stmt->expr);
  return new_stmt_expr(expr);
}

static Stmt *dup_stmt_block(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  static Scope *original_scope;
  Scope *bak_original_scope = original_scope;
  Scope *scope = NULL;
  if (stmt->block.scope != NULL) {
    original_scope = stmt->block.scope;
    Vector *vars = NULL;
    Vector *org_vars = stmt->block.scope->vars;
    if (org_vars != NULL) {
      vars = new_vector();
      for (int i = 0; i < org_vars->len; ++i) {
        VarInfo *vi = org_vars->data[i];
        const Token *token;
        if (vi->storage & VS_PARAM) {  // Rename parameter to be unique.
          token = alloc_dummy_ident();
        } else {
          token = vi->ident;
        }
        // The new variable is no longer a parameter.
        VarInfo *dup = var_add(vars, token, vi->type, vi->storage & ~VS_PARAM);
        if (vi->storage & VS_STATIC)
          dup->static_.svar = vi->static_.svar;
      }
    }
    scope = enter_scope(curfunc);
    scope->vars = vars;
    targetscope = stmt->block.scope;
  }
  assert(stmt->block.stmts != NULL);
  Stmt *dup_block = new_stmt_block(stmt->token, scope);
  dup_block->block.rbrace = stmt->block.rbrace;
  Vector *stmts = dup_block->block.stmts;
  for (int i = 0, len = stmt->block.stmts->len; i < len; ++i) {
    Stmt *st = stmt->block.stmts->data[i];
    if (st == NULL)
      continue;
    Stmt *dup_stmt = duplicate_inline_function_stmt(targetfunc, targetscope, st);
    vec_push(stmts, dup_stmt);
  }

  if (stmt->block.scope != NULL)
    exit_scope();
  dup_block->reach = stmt->reach;
  original_scope = bak_original_scope;
  return dup_block;
}

static Stmt *dup_stmt_if(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  Expr *cond = duplicate_inline_function_expr(targetfunc, targetscope, stmt->if_.cond);
  Stmt *tblock = duplicate_inline_function_stmt(targetfunc, targetscope, stmt->if_.tblock);
  Stmt *fblock = duplicate_inline_function_stmt(targetfunc, targetscope, stmt->if_.fblock);
  return new_stmt_if(stmt->token, cond, tblock, fblock);
}

static Stmt *dup_stmt_switch(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  Expr *value = duplicate_inline_function_expr(targetfunc, targetscope, stmt->switch_.value);
  Stmt *dup = new_stmt_switch(stmt->token, value);
  // Prepare buffer for cases.
  Vector *cases = new_vector();
  for (int i = 0; i < stmt->switch_.cases->len; ++i)
    vec_push(cases, NULL);
  dup->switch_.cases = cases;

  SAVE_LOOP_SCOPE(save, stmt, NULL); loop_scope.swtch = dup; {
    // cases, default_ will be updated according to the body statements duplication.
    Stmt *body = duplicate_inline_function_stmt(targetfunc, targetscope, stmt->switch_.body);
    dup->switch_.body = body;
  } RESTORE_LOOP_SCOPE(save);

  return dup;
}

static Stmt *dup_stmt_while(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  Expr *cond = duplicate_inline_function_expr(targetfunc, targetscope, stmt->while_.cond);
  Stmt *dup = new_stmt_while(stmt->token, cond, NULL);
  SAVE_LOOP_SCOPE(save, dup, dup); {
    dup->while_.body = duplicate_inline_function_stmt(targetfunc, targetscope,
                                                      stmt->while_.body);
  } RESTORE_LOOP_SCOPE(save);
  return dup;
}

static Stmt *dup_stmt_do_while(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  Stmt *dup = new_stmt(ST_DO_WHILE, stmt->token);
  SAVE_LOOP_SCOPE(save, dup, dup); {
    dup->while_.body = duplicate_inline_function_stmt(targetfunc, targetscope,
                                                      stmt->while_.body);
  } RESTORE_LOOP_SCOPE(save);
  dup->while_.cond = duplicate_inline_function_expr(targetfunc, targetscope, stmt->while_.cond);
  return dup;
}

static Stmt *dup_stmt_for(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  Expr *pre = duplicate_inline_function_expr(targetfunc, targetscope, stmt->for_.pre);
  Expr *cond = duplicate_inline_function_expr(targetfunc, targetscope, stmt->for_.cond);
  Expr *post = duplicate_inline_function_expr(targetfunc, targetscope, stmt->for_.post);
  Stmt *dup = new_stmt_for(stmt->token, pre, cond, post, NULL);
  SAVE_LOOP_SCOPE(save, dup, dup); {
    dup->for_.body = duplicate_inline_function_stmt(targetfunc, targetscope, stmt->for_.body);
  } RESTORE_LOOP_SCOPE(save);
  return dup;
}

static Stmt *dup_stmt_break(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  UNUSED(targetfunc);
  UNUSED(targetscope);
  Stmt *dup = new_stmt(stmt->kind, stmt->token);
  Stmt *target = stmt->kind == ST_BREAK ? loop_scope.break_ : loop_scope.continu;
  assert(target != NULL);
  dup->break_.target = target;
  return dup;
}
#define dup_stmt_continue  dup_stmt_break

static Stmt *dup_stmt_return(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  Expr *val = duplicate_inline_function_expr(targetfunc, targetscope, stmt->return_.val);
  Stmt *dup = new_stmt_return(stmt->token, val);
  return dup;
}

static Stmt *dup_stmt_case(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  Stmt *swtch = loop_scope.swtch;
  assert(swtch != NULL);
  Stmt *dup = new_stmt_case(stmt->token, swtch, stmt->case_.value);
  if (stmt->case_.value == NULL) {
    swtch->switch_.default_ = dup;
  } else {
    // Value is constant so reuse.
    assert(is_const(stmt->case_.value));
  }
  dup->case_.stmt = duplicate_inline_function_stmt(targetfunc, targetscope, stmt->case_.stmt);

  // Find index.
  Stmt *org_swtch = stmt->case_.swtch;
  Vector *org_cases = org_swtch->switch_.cases;
  int index = 0;
  for (int len = org_cases->len; index < len; ++index) {
    if (org_cases->data[index] == stmt)
      break;
  }
  assert(index < org_cases->len);
  swtch->switch_.cases->data[index] = dup;
  return dup;
}

static Stmt *dup_stmt_label(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  Stmt *follow = duplicate_inline_function_stmt(targetfunc, targetscope, stmt->label.stmt);
  Stmt *dup = new_stmt_label(stmt->token, follow);
  return dup;
}

static Stmt *dup_stmt_vardecl(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  VarDecl *d = stmt->vardecl;
  if (d->varinfo->storage & VS_STATIC)
    return NULL;
  VarInfo *varinfo = scope_find(curscope, d->varinfo->ident->ident, NULL);
  assert(varinfo != NULL);
  VarDecl *decl = new_vardecl(varinfo);
  decl->init_stmt = duplicate_inline_function_stmt(targetfunc, targetscope, d->init_stmt);
  return new_stmt_vardecl(decl);
}

static Vector *duplicate_inline_function_asm_args(Function *targetfunc, Scope *targetscope,
                                                  Vector *srcs) {
  if (srcs == NULL)
    return NULL;
  Vector *dups = new_vector();
  for (int i = 0; i < srcs->len; ++i) {
    AsmArg *src = srcs->data[i];
    AsmArg *dup = calloc_or_die(sizeof(*dup));
    dup->constraint = src->constraint;
    dup->expr = duplicate_inline_function_expr(targetfunc, targetscope, src->expr);
    vec_push(dups, dup);
  }
  return dups;
}

static Stmt *dup_stmt_asm(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  Vector *outputs = duplicate_inline_function_asm_args(targetfunc, targetscope, stmt->asm_.outputs);
  Vector *inputs = duplicate_inline_function_asm_args(targetfunc, targetscope, stmt->asm_.inputs);
  Stmt *dup = new_stmt_asm(stmt->token, stmt->asm_.templates, outputs, inputs, stmt->asm_.flag);
  return dup;
}

static Stmt *duplicate_inline_function_stmt(Function *targetfunc, Scope *targetscope, Stmt *stmt) {
  if (stmt == NULL)
    return NULL;

  typedef Stmt *(*DuplicateStmt)(Function*, Scope*, Stmt*);
  static const DuplicateStmt table[] = {
    [ST_EMPTY] = dup_stmt_empty, [ST_EXPR] = dup_stmt_expr, [ST_BLOCK] = dup_stmt_block,
    [ST_IF] = dup_stmt_if, [ST_SWITCH] = dup_stmt_switch, [ST_WHILE] = dup_stmt_while,
    [ST_DO_WHILE] = dup_stmt_do_while, [ST_FOR] = dup_stmt_for, [ST_BREAK] = dup_stmt_break,
    [ST_CONTINUE] = dup_stmt_continue, [ST_RETURN] = dup_stmt_return, [ST_CASE] = dup_stmt_case,
    [ST_GOTO] = dup_stmt_goto, [ST_LABEL] = dup_stmt_label, [ST_VARDECL] = dup_stmt_vardecl,
    [ST_ASM] = dup_stmt_asm,
#if XCC_TARGET_ARCH == XCC_ARCH_WASM
    // Inlining function which contains label or goto is prevented.
    // [ST_BLOCK_FOR_LABEL] = dup_stmt_block_for_label,
#endif
  };
  assert(stmt->kind < (int)ARRAY_SIZE(table));
  assert(table[stmt->kind] != NULL);
  Stmt *duplicated = (*table[stmt->kind])(targetfunc, targetscope, stmt);
  duplicated->reach = stmt->reach;
  return duplicated;
}

Stmt *embed_inline_funcall(VarInfo *varinfo) {
  assert(varinfo->type->kind == TY_FUNC);
  Function *targetfunc = varinfo->global.func;
  return duplicate_inline_function_stmt(targetfunc, NULL, targetfunc->body_block);
}

//

Function *define_func(Type *functype, const Token *ident, const Vector *param_vars,
                      int storage, Table *attributes) {
  int flag = 0;
  if (attributes != NULL) {
    if (table_try_get(attributes, alloc_cname("noreturn"), NULL))
      flag |= FUNCF_NORETURN;
  }

  Function *func = new_func(functype, ident, functype->func.param_vars, attributes, flag);
  func->params = param_vars;
  VarInfo *varinfo = scope_find(global_scope, func->ident->ident, NULL);
  if (varinfo == NULL) {
    varinfo = add_var_to_scope(global_scope, ident, functype, storage, false);
  } else {
    Declaration *predecl = varinfo->global.funcdecl;
    if (predecl != NULL) {
      assert(predecl->kind == DCL_DEFUN);
      if (predecl->defun.func != NULL) {
        int merge_flag = (flag | predecl->defun.func->flag) & FUNCF_NORETURN;
        func->flag |= merge_flag;
        predecl->defun.func->flag |= merge_flag;

        if (attributes != NULL) {
          if (predecl->defun.func->attributes != NULL) {
            const Name *name;
            Vector *params;
            for (int it = 0; (it = table_iterate(predecl->defun.func->attributes, it, &name,
                                                 (void**)&params)) != -1;) {
              if (!table_try_get(attributes, name, NULL))
                table_put(attributes, name, params);
            }
          }
          predecl->defun.func->attributes = attributes;
        }
      }
    }

    if ((varinfo->storage & VS_IMPLICIT) && functype->func.ret->kind == TY_VOID)
      varinfo->type = functype;
    varinfo->storage &= ~VS_IMPLICIT;

    if (varinfo->type->kind != TY_FUNC ||
        !same_type(varinfo->type->func.ret, functype->func.ret) ||
        (varinfo->type->func.params != NULL && !same_type(varinfo->type, functype))) {
      parse_error(PE_NOFATAL, ident, "definition conflict: `%.*s'", NAMES(func->ident->ident));
    } else {
      if (varinfo->global.func == NULL) {
        if (varinfo->type->func.params == NULL)  // Old-style prototype definition.
          varinfo->type = functype;  // Overwrite with actual function type.
      }
    }
  }
  return func;
}

static void enumerate_ctor_dtors(Vector *decls, Vector *container, const Name *attr_name) {
  vec_init(container);
  for (int i = 0, len = decls->len; i < len; ++i) {
    Declaration *decl = decls->data[i];
    if (decl == NULL || decl->kind != DCL_DEFUN)
      continue;
    Function *func = decl->defun.func;
    if (func->attributes != NULL) {
      Vector *params;
      if (container != NULL && table_try_get(func->attributes, attr_name, (void*)&params))
        vec_push(container, func);
    }
  }
}

void enumerate_ctors(Vector *decls, Vector *ctors) {
  enumerate_ctor_dtors(decls, ctors, alloc_cname("constructor"));
}

void enumerate_dtors(Vector *decls, Vector *dtors) {
  enumerate_ctor_dtors(decls, dtors, alloc_cname("destructor"));
}

#ifdef NO_DESTRUCTOR
static Function *generate_dtor_caller_func(Vector *dtors) {
  // Generate function:
  //  void dtor_caller(void*) {
  //    dtor1();
  //    ...
  //  }

  Vector *param_types = new_vector();
  vec_push(param_types, &tyVoidPtr);
  Type *functype = new_func_type(&tyVoid, param_types, false);

  Vector *top_vars = new_vector();
  var_add(top_vars, alloc_dummy_ident(), &tyVoidPtr, VS_PARAM);

  const Token *functok = alloc_dummy_ident();
  Table *attributes = NULL;
  Function *func = define_func(functype, functok, top_vars, VS_STATIC | VS_USED, attributes);

  assert(curfunc == NULL);
  assert(is_global_scope(curscope));
  curfunc = func;

  func->scopes = new_vector();
  Scope *scope = enter_scope(func);
  scope->vars = top_vars;

  // Construct function body: call destructors.
  Stmt *block = func->body_block = new_stmt_block(NULL, scope);
  Vector *stmts = block->block.stmts;
  for (int i = 0; i < dtors->len; ++i) {
    Function *dtor = dtors->data[i];
    const Token *token = NULL;
    Vector *args = new_vector();
    Expr *func = new_expr_variable(dtor->ident->ident, dtor->type, token, global_scope);
    Expr *call = new_expr_funcall(token, dtor->type, func, args);
    vec_push(stmts, new_stmt_expr(call));
  }

  exit_scope();
  curfunc = NULL;

  return func;
}

static Function *generate_dtor_register_func(Function *dtor_caller_func) {
  // Generate function:
  //  __attribute__((constructor))
  //  void dtor_register(void) {
  //    __cxa_atexit(dtor_caller, NULL, &__dso_handle);
  //  }

  // Declare: extern void *__dso_handle;
  const Name *dso_handle_name = alloc_cname("__dso_handle");
  scope_add(global_scope,
            alloc_ident(dso_handle_name, NULL, dso_handle_name->chars,
                        dso_handle_name->chars + dso_handle_name->bytes),
            &tyVoidPtr, VS_EXTERN | VS_USED);

  // Declare: extern int __cxa_atexit(void (*)(void*), void*, void*);
  const Name *cxa_atexit_name = alloc_cname("__cxa_atexit");
  Type *cxa_atexit_functype;
  {
    Vector *cxa_atexit_param_types = new_vector();
    vec_push(cxa_atexit_param_types, &tyVoidPtr);  // void (*func)(void*)
    vec_push(cxa_atexit_param_types, &tyVoidPtr);
    vec_push(cxa_atexit_param_types, &tyVoidPtr);

    Vector *param_vars = new_vector();
    var_add(param_vars, alloc_dummy_ident(), &tyVoidPtr, VS_PARAM);
    var_add(param_vars, alloc_dummy_ident(), &tyVoidPtr, VS_PARAM);
    var_add(param_vars, alloc_dummy_ident(), &tyVoidPtr, VS_PARAM);

    cxa_atexit_functype = new_func_type(&tyInt, cxa_atexit_param_types, false);
    define_func(cxa_atexit_functype,
                alloc_ident(cxa_atexit_name, NULL, cxa_atexit_name->chars, NULL), param_vars,
                VS_EXTERN | VS_USED, NULL);
  }

  Vector *param_types = new_vector();
  Type *functype = new_func_type(&tyVoid, param_types, false);
  Vector *top_vars = new_vector();

  const Token *functok = alloc_dummy_ident();
  Table *attributes = alloc_table();
  assert(attributes != NULL);
  table_put(attributes, alloc_cname("constructor"), NULL);
  Function *func = define_func(functype, functok, top_vars, VS_STATIC | VS_USED, attributes);

  assert(curfunc == NULL);
  assert(is_global_scope(curscope));
  curfunc = func;

  func->scopes = new_vector();
  Scope *scope = enter_scope(func);
  scope->vars = top_vars;

  Stmt *block = func->body_block = new_stmt_block(NULL, scope);
  Vector *stmts = block->block.stmts;
  const Token *token = NULL;
  Vector *args = new_vector();
  vec_push(args, make_refer(token, new_expr_variable(dtor_caller_func->ident->ident,
                                                     dtor_caller_func->type, token, global_scope)));
  vec_push(args, new_expr_fixlit(&tyVoidPtr, token, 0));
  vec_push(args,
           new_expr_unary(EX_REF, &tyVoidPtr, NULL,
                          new_expr_variable(dso_handle_name, &tyVoidPtr, token, global_scope)));
  // __cxa_atexit(dtor_caller, NULL, &__dso_handle);
  Expr *funcall = new_expr_funcall(
      token, cxa_atexit_functype,
      new_expr_variable(cxa_atexit_name, cxa_atexit_functype, token, global_scope),
      args);
  vec_push(stmts, new_stmt_expr(funcall));

  exit_scope();
  curfunc = NULL;

  return func;
}

void modify_dtor_func(Vector *decls) {
  Vector dtors;
  enumerate_dtors(decls, &dtors);
  if (dtors.len == 0)
    return;

  for (int i = 0; i < dtors.len; ++i) {
    Function *func = dtors.data[i];
    const Type *type = func->type;
    if (type->func.params == NULL || type->func.params->len > 0 ||
        type->func.ret->kind != TY_VOID) {
      parse_error(PE_NOFATAL, func->ident,
                  "destructor must have no parameters and return void");
    }
  }

  Function *caller_func = generate_dtor_caller_func(&dtors);
  vec_push(decls, new_decl_defun(caller_func));

  Function *register_func = generate_dtor_register_func(caller_func);
  vec_push(decls, new_decl_defun(register_func));
}
#endif
