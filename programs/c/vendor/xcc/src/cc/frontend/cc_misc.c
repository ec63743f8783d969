#include "../config.h"
#include "cc_misc.h"

#include <assert.h>
#include <stdlib.h>  // free

#include "ast.h"
#include "fe_misc.h"
#include "initializer.h"
#include "table.h"
#include "type.h"
#include "util.h"
#include "var.h"

bool is_function_omitted(const VarInfo *funcvi, Table *attributes) {
  assert(funcvi != NULL);
  int storage = funcvi->storage;
  if (attributes != NULL) {
    if (table_try_get(attributes, alloc_cname("__always_inline__"), NULL) ||
        table_try_get(attributes, alloc_cname("__gnu_inline__"), NULL))
      return true;
  }

  if ((storage & (VS_STATIC | VS_USED)) == VS_STATIC)  // Static function but not used.
    return true;
  if ((storage & VS_REF_TAKEN) || ((storage & (VS_INLINE | VS_EXTERN)) == (VS_INLINE | VS_EXTERN)))
    return false;
  return (storage & (VS_INLINE | VS_EXTERN | VS_USED)) == VS_INLINE;
}

static void eval_initial_value(Expr *expr, Expr **pvar, int64_t *poffset) {
  enum ExprKind kind = expr->kind;
  switch (kind) {
  case EX_FIXNUM:
    *poffset = expr->fixnum;
    break;
  case EX_VAR:
    assert(*pvar == NULL);
    *pvar = expr;
    break;
  case EX_ADD:
  case EX_SUB:
  case EX_MUL:
  case EX_DIV:
    {
      Expr *var1 = NULL, *var2 = NULL;
      int64_t offset1 = 0, offset2 = 0;
      eval_initial_value(expr->bop.lhs, &var1, &offset1);
      eval_initial_value(expr->bop.rhs, &var2, &offset2);
      if (var1 != NULL || var2 != NULL) {
        assert(kind == EX_ADD || kind == EX_SUB);
        if (var1 != NULL) {
          assert(var2 == NULL);
          *pvar = var1;
        } else if (var2 != NULL) {
          assert(kind == EX_ADD);
          *pvar = var2;
        }
      }

#define CALC(kind, o1, o2) \
  switch (kind) { \
  default: assert(false); /* Fallthrough */ \
  case EX_ADD:  result = o1 + o2; break; \
  case EX_SUB:  result = o1 - o2; break; \
  case EX_MUL:  result = o1 * o2; break; \
  case EX_DIV:  result = o1 / o2; break; \
  }
      int64_t result = offset1;
      if (is_unsigned(expr->type)) {
        uint64_t o1 = offset1, o2 = offset2;
        CALC(kind, o1, o2);
      } else {
        int64_t o1 = offset1, o2 = offset2;
        CALC(kind, o1, o2);
      }
      *poffset = result;
#undef result
    }
    break;
  case EX_REF:
  case EX_DEREF:
  case EX_CAST:
    eval_initial_value(expr->unary.sub, pvar, poffset);
    break;
  case EX_MEMBER:
    {
      eval_initial_value(expr->member.target, pvar, poffset);
      const MemberInfo *member = expr->member.info;
      *poffset += member->offset;
    }
    break;
  case EX_COMPLIT:
    assert(expr->complit.var->kind == EX_VAR);
    eval_initial_value(expr->complit.var, pvar, poffset);
    break;
  // case EX_STR:  // should be handled in parser.
  default: assert(!"illegal"); break;
  }
}

#ifndef __NO_BITFIELD
// Emits the bytes of the bit fields from `start` on. Returns the last of them.
static int construct_initial_value_bitfield(
    const StructInfo *sinfo, const Initializer *init, int start, int *poffset,
    const ConstructInitialValueVTable *vtable, void *ud) {
  // Up to the next other member: its bytes, or the structure's end.
  int end = start;
  size_t limit = sinfo->size;
  for (; end < sinfo->member_count; ++end) {
    const MemberInfo *member = &sinfo->members[end];
    if (!member->bitfield.active) {
      limit = member->offset;
      break;
    }
  }
  size_t first = *poffset, used = first;
  unsigned char *bytes = calloc_or_die(limit - first + 1);
  for (int i = start; i < end; ++i) {
    const MemberInfo *member = &sinfo->members[i];
    int width = member->bitfield.width;
    if (width == 0)
      continue;
    const Initializer *mem_init = init != NULL ? init->multi->data[i] : NULL;
    UFixnum value = 0;
    if (mem_init != NULL) {
      if (!(mem_init->kind == IK_SINGLE && mem_init->single->kind == EX_FIXNUM))
        error("Illegal initializer: constant number expected");
      value = mem_init->single->fixnum;
    }
    size_t position = member->offset * TARGET_CHAR_BIT + member->bitfield.position;
    for (int k = 0; k < width; ++k, ++position) {
      size_t at = position / TARGET_CHAR_BIT;
      assert(at >= first && at < limit);
      if ((value >> k) & 1)
        bytes[at - first] |= 1 << (position % TARGET_CHAR_BIT);
      if (used <= at)
        used = at + 1;
    }
  }
  for (size_t at = first; at < used; ++at)
    (*vtable->emit_number)(ud, &tyChar, NULL, bytes[at - first]);
  free(bytes);
  *poffset = used;
  return end - 1;
}
#endif

#ifndef __NO_FLONUM
static void construct_flonum_initial_value(const Type *type, const Initializer *init,
                                           const ConstructInitialValueVTable *vtable, void *ud) {
  switch (type->flonum.kind) {
  case FL_DOUBLE:
  case FL_LDOUBLE:  // long-double in XCC is same as double.
    {
      union {double f; uint64_t h;} v;
      v.f = 0;
      if (init != NULL) {
        assert(init->kind == IK_SINGLE);
        Expr *value = init->single;
        if (!(is_const(value) && is_flonum(value->type)))
          error("Illegal initializer: constant number expected");
        v.f = value->flonum;
      }
#if 0
      _DOUBLE(FLONUM(v.d));
#else
      (*vtable->emit_number)(ud, type, NULL, v.h);
#endif
    }
    break;
  case FL_FLOAT:
    {
      union {float f; uint32_t h;} v;
      v.f = 0;
      if (init != NULL) {
        assert(init->kind == IK_SINGLE);
        Expr *value = init->single;
        if (!(is_const(value) && is_flonum(value->type)))
          error("Illegal initializer: constant number expected");
        v.f = value->flonum;
      }
#if 0
      _FLOAT(FLONUM(v.f));
#else
      (*vtable->emit_number)(ud, type, NULL, v.h);
#endif
    }
    break;
  }
}
#endif

static void construct_array_initial_value(const Type *type, const Initializer *init,
                                          const ConstructInitialValueVTable *vtable, void *ud) {
  if (init == NULL || init->kind == IK_MULTI) {
    const Type *elem_type = type->pa.ptrof;
    ssize_t index = 0;
    if (init != NULL) {
      Vector *init_array = init->multi;
      for (ssize_t i = 0; i < init_array->len; ++i, ++index) {
        const Initializer *init_elem = init_array->data[i];
        construct_initial_value(elem_type, init_elem, vtable, ud);
      }
    }
    // Padding
    for (ssize_t i = index, n = type->pa.length; i < n; ++i)
      construct_initial_value(elem_type, NULL, vtable, ud);
    return;
  }
  if (init->kind == IK_SINGLE) {
    Expr *e = strip_cast(init->single);
    if (e->kind == EX_STR && is_char_type(type->pa.ptrof, e->str.kind)) {
      assert(vtable->emit_string != NULL);
      (*vtable->emit_string)(ud, e, type_size(type));
      return;
    }
  }
  error("Illegal initializer");
}

static void construct_struct_initial_value(const Type *type, const Initializer *init,
                                           const ConstructInitialValueVTable *vtable, void *ud) {
  const StructInfo *sinfo = type->struct_.info;
  assert(init == NULL || (init->kind == IK_MULTI && init->multi->len == sinfo->member_count));
  int offset = 0;
  for (int i = 0, n = sinfo->member_count; i < n; ++i) {
    const MemberInfo *member = &sinfo->members[i];
#ifndef __NO_BITFIELD
    if (member->bitfield.active && !(sinfo->flag & SIF_UNION)) {
      i = construct_initial_value_bitfield(sinfo, init, i, &offset, vtable, ud);
      continue;
    }
#endif
    const Initializer *mem_init;
    if (init == NULL) {
      if (sinfo->flag & SIF_UNION)
        continue;
      mem_init = NULL;
    } else {
      mem_init = init->multi->data[i];
    }
#ifndef __NO_BITFIELD
    if (mem_init != NULL && member->bitfield.active) {
      // Of a union: the other members follow as zeros.
      StructInfo only = *sinfo;
      MemberInfo copy = *member;
      Initializer values = *init;
      Vector one = *init->multi;
      void *elems[] = {(void*)mem_init};
      only.members = &copy;
      only.member_count = 1;
      one.data = elems;
      one.len = 1;
      values.multi = &one;
      construct_initial_value_bitfield(&only, &values, 0, &offset, vtable, ud);
      continue;
    }
#endif
    if (mem_init != NULL || !(sinfo->flag & SIF_UNION)) {
      for (; offset < (int)member->offset; ++offset)
        (*vtable->emit_number)(ud, &tyChar, NULL, 0);
      construct_initial_value(member->type, mem_init, vtable, ud);
      offset += type_size(member->type);
    }
  }
  size_t size = type_size(type);
  if (size != (size_t)offset) {
    // Put padding.
    int d = size - offset;
    const Type *type = get_fixnum_type_from_size(d);
    if (type != NULL) {
      (*vtable->emit_number)(ud, type, NULL, 0);
    } else {
      for (int i = 0; i < d; ++i)
        (*vtable->emit_number)(ud, &tyChar, NULL, 0);
    }
  }
}

void construct_initial_value(const Type *type, const Initializer *init,
                             const ConstructInitialValueVTable *vtable, void *ud) {
  assert(init == NULL || init->kind != IK_DOT);

  switch (type->kind) {
  case TY_FIXNUM: case TY_PTR:
    {
      Expr *var = NULL;
      Fixnum offset = 0;
      if (init != NULL) {
        assert(init->kind == IK_SINGLE);
        eval_initial_value(init->single, &var, &offset);
      }

      (*vtable->emit_number)(ud, type, var, offset);
    }
    break;
  case TY_ARRAY:   construct_array_initial_value(type, init, vtable, ud); break;
  case TY_STRUCT:  construct_struct_initial_value(type, init, vtable, ud); break;

  case TY_FLONUM:
#ifndef __NO_FLONUM
    construct_flonum_initial_value(type, init, vtable, ud);
    break;
#endif
    // Fallthrough
  case TY_FUNC: case TY_VOID: case TY_AUTO: assert(false); break;
  }
}
