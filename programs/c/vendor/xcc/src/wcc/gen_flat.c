// Functions with labels, or with a `case` within a statement of its `switch`.
//
// WebAssembly has no jumps, so such a function is cut into pieces, which lie one after another within a loop:
//   loop
//     block ... block
//           br_table <state>     goes to the piece that `state` names
//         end
//         piece 0
//       end
//       piece 1
//     end
//     ...
// A jump forward leaves the blocks up to its piece. A jump back sets `state` and starts the loop again.
// Statements that no jump enters or leaves stay as they are.

#include "../config.h"
#include "wcc.h"

#include <assert.h>

#include "ast.h"
#include "fe_misc.h"  // curfunc, curscope
#include "table.h"
#include "type.h"
#include "util.h"
#include "var.h"
#include "wasm.h"
#include "wasm_obj.h"

extern int cur_depth;

typedef struct {
  int piece;  // -1: not placed.
} Label;

enum ItemKind {
  IT_STMT,
  IT_EXPR,
  IT_LABEL,
  IT_JUMP,
  IT_JUMP_IF,
  IT_SWITCH,
};

typedef struct {
  enum ItemKind kind;
  Scope *scope;
  Stmt *stmt;
  Expr *expr;
  bool tf;  // IT_JUMP_IF: jumps if the condition is that.
  Label *label;
} Item;

// Where `break` and `continue` of a statement go.
typedef struct {
  Stmt *stmt;
  Label *break_;
  Label *continu;
} Target;

static Vector *items;    // <Item*>
static Vector *targets;  // <Target*>
static Table case_labels;
static Table goto_labels;
static int piece_count;
static int loop_depth;

static Label *new_label(void) {
  Label *label = calloc_or_die(sizeof(*label));
  label->piece = -1;
  return label;
}

static Item *add_item(enum ItemKind kind) {
  Item *item = calloc_or_die(sizeof(*item));
  item->kind = kind;
  item->scope = curscope;
  vec_push(items, item);
  return item;
}

static void place(Label *label) { add_item(IT_LABEL)->label = label; }
static void jump(Label *label) { add_item(IT_JUMP)->label = label; }

static void jump_if(Expr *cond, bool tf, Label *label) {
  if (is_const(cond)) {
    if (is_const_truthy(cond) == tf)
      jump(label);
    return;
  }
  Item *item = add_item(IT_JUMP_IF);
  item->expr = cond;
  item->tf = tf;
  item->label = label;
}

static void run_expr(Expr *expr) {
  if (expr != NULL)
    add_item(IT_EXPR)->expr = expr;
}

static Label *label_of(const Name *name) {
  Label *label = table_get(&goto_labels, name);
  if (label == NULL) {
    label = new_label();
    table_put(&goto_labels, name, label);
  }
  return label;
}

static const Name *key_of(Stmt *stmt) {
  char text[32];
  int length = snprintf(text, sizeof(text), "%p", (void*)stmt);
  return alloc_name(text, text + length, true);
}

// Whether no jump enters or leaves a statement, whose own loops and switches are `inside`.
static bool is_closed(Stmt *stmt, Vector *inside) {
  if (stmt == NULL)
    return true;
  bool closed = true;
  switch (stmt->kind) {
  case ST_LABEL: case ST_GOTO:
    return false;
  case ST_CASE:
    if (!vec_contains(inside, stmt->case_.swtch) || inside->data[inside->len - 1] != stmt->case_.swtch)
      return false;
    return is_closed(stmt->case_.stmt, inside);
  case ST_BREAK: case ST_CONTINUE:
    return vec_contains(inside, stmt->break_.target);
  case ST_BLOCK:
    for (int i = 0; i < stmt->block.stmts->len && closed; ++i)
      closed = is_closed(stmt->block.stmts->data[i], inside);
    return closed;
  case ST_IF:
    // A `case` may not lie in it.
    vec_push(inside, stmt);
    closed = is_closed(stmt->if_.tblock, inside) && is_closed(stmt->if_.fblock, inside);
    vec_pop(inside);
    return closed;
  case ST_SWITCH:
    vec_push(inside, stmt);
    closed = is_closed(stmt->switch_.body, inside);
    vec_pop(inside);
    return closed;
  case ST_WHILE: case ST_DO_WHILE:
    vec_push(inside, stmt);
    closed = is_closed(stmt->while_.body, inside);
    vec_pop(inside);
    return closed;
  case ST_FOR:
    vec_push(inside, stmt);
    closed = is_closed(stmt->for_.body, inside);
    vec_pop(inside);
    return closed;
  default:
    return true;
  }
}

static void flatten(Stmt *stmt);

static void flatten_within(Stmt *stmt, Stmt *body, Label *break_, Label *continu) {
  Target *target = calloc_or_die(sizeof(*target));
  target->stmt = stmt;
  target->break_ = break_;
  target->continu = continu;
  vec_push(targets, target);
  flatten(body);
  vec_pop(targets);
}

static void flatten(Stmt *stmt) {
  if (stmt == NULL)
    return;
  Vector *inside = new_vector();
  bool closed = is_closed(stmt, inside);
  free_vector(inside);
  if (closed) {
    add_item(IT_STMT)->stmt = stmt;
    return;
  }

  switch (stmt->kind) {
  case ST_BLOCK:
    {
      Scope *saved = curscope;
      if (stmt->block.scope != NULL)
        curscope = stmt->block.scope;
      for (int i = 0; i < stmt->block.stmts->len; ++i)
        flatten(stmt->block.stmts->data[i]);
      curscope = saved;
    }
    break;
  case ST_IF:
    {
      Label *else_ = new_label(), *end = new_label();
      jump_if(stmt->if_.cond, false, else_);
      flatten(stmt->if_.tblock);
      jump(end);
      place(else_);
      flatten(stmt->if_.fblock);
      place(end);
    }
    break;
  case ST_WHILE:
    {
      Label *top = new_label(), *end = new_label();
      place(top);
      jump_if(stmt->while_.cond, false, end);
      flatten_within(stmt, stmt->while_.body, end, top);
      jump(top);
      place(end);
    }
    break;
  case ST_DO_WHILE:
    {
      Label *top = new_label(), *next = new_label(), *end = new_label();
      place(top);
      flatten_within(stmt, stmt->while_.body, end, next);
      place(next);
      jump_if(stmt->while_.cond, true, top);
      place(end);
    }
    break;
  case ST_FOR:
    {
      Label *top = new_label(), *next = new_label(), *end = new_label();
      run_expr(stmt->for_.pre);
      place(top);
      if (stmt->for_.cond != NULL)
        jump_if(stmt->for_.cond, false, end);
      flatten_within(stmt, stmt->for_.body, end, next);
      place(next);
      run_expr(stmt->for_.post);
      jump(top);
      place(end);
    }
    break;
  case ST_SWITCH:
    {
      Label *end = new_label();
      Vector *cases = stmt->switch_.cases;
      for (int i = 0; i < cases->len; ++i)
        table_put(&case_labels, key_of(cases->data[i]), new_label());
      Item *item = add_item(IT_SWITCH);
      item->stmt = stmt;
      item->label = end;
      flatten_within(stmt, stmt->switch_.body, end, NULL);
      place(end);
    }
    break;
  case ST_CASE:
    place(table_get(&case_labels, key_of(stmt)));
    flatten(stmt->case_.stmt);
    break;
  case ST_LABEL:
    place(label_of(stmt->token->ident));
    flatten(stmt->label.stmt);
    break;
  case ST_GOTO:
    jump(label_of(stmt->goto_.label->ident));
    break;
  case ST_BREAK: case ST_CONTINUE:
    for (int i = targets->len; i-- > 0; ) {
      Target *target = targets->data[i];
      if (target->stmt == stmt->break_.target) {
        jump(stmt->kind == ST_BREAK ? target->break_ : target->continu);
        return;
      }
    }
    assert(!"no target");
    break;
  default:
    assert(!"closed");
    break;
  }
}

// The depth of a branch to the end of the block before a piece.
static int depth_of(int piece) {
  return cur_depth - (loop_depth + 1 + (piece_count - 1 - piece)) - 1;
}

static void set_state(int piece) {
  FuncExtra *extra = curfunc->extra;
  gen_expr_stmt(new_expr_bop(EX_ASSIGN, &tyVoid, NULL, extra->state, new_expr_fixlit(&tyInt, NULL, piece)));
}

static void gen_jump(Label *label, int from) {
  assert(label->piece >= 0);
  if (label->piece > from) {
    ADD_CODE(OP_BR);
    ADD_ULEB128(depth_of(label->piece));
  } else {
    set_state(label->piece);
    ADD_CODE(OP_BR);
    ADD_ULEB128(cur_depth - loop_depth - 1);
  }
}

static void gen_jump_if(Item *item, int from) {
  Expr *cond = item->expr;
  while (cond->kind == EX_EXPECT)
    cond = cond->bop.lhs;
  gen_cond(cond, item->tf, true);
  ADD_CODE(OP_IF, WT_VOID);
  ++cur_depth;
  gen_jump(item->label, from);
  ADD_CODE(OP_END);
  --cur_depth;
}

static void gen_jumps_of_switch(Item *item, int from) {
  Stmt *stmt = item->stmt;
  Expr *value = stmt->switch_.value;
  if (value->kind == EX_COMMA) {
    gen_expr(value, false);
    value = value->bop.rhs;
  }
  assert(is_const(value) || value->kind == EX_VAR);
  bool is_i64 = type_size(value->type) > I32_SIZE;
  Label *otherwise = item->label;
  for (int i = 0; i < stmt->switch_.cases->len; ++i) {
    Stmt *c = stmt->switch_.cases->data[i];
    Label *label = table_get(&case_labels, key_of(c));
    if (c->case_.value == NULL) {
      otherwise = label;
      continue;
    }
    gen_expr(value, true);
    ADD_CODE(is_i64 ? OP_I64_CONST : OP_I32_CONST);
    ADD_LEB128(is_i64 ? c->case_.value->fixnum : (int32_t)c->case_.value->fixnum);
    ADD_CODE(is_i64 ? OP_I64_EQ : OP_I32_EQ, OP_IF, WT_VOID);
    ++cur_depth;
    gen_jump(label, from);
    ADD_CODE(OP_END);
    --cur_depth;
  }
  gen_jump(otherwise, from);
}

static int current_piece;

// A `goto` within an expression of statements.
void gen_goto(Stmt *stmt) {
  Label *label = table_get(&goto_labels, stmt->goto_.label->ident);
  if (label == NULL || label->piece < 0)
    error("goto `%.*s': a label within an expression is not supported", NAMES(stmt->goto_.label->ident));
  gen_jump(label, current_piece);
}

void gen_flat(Function *func) {
  items = new_vector();
  targets = new_vector();
  table_init(&case_labels);
  table_init(&goto_labels);
  Scope *saved = curscope;
  flatten(func->body_block);

  piece_count = 1;
  for (int i = 0; i < items->len; ++i) {
    Item *item = items->data[i];
    if (item->kind == IT_LABEL)
      item->label->piece = piece_count++;
  }
  for (int i = 0; i < items->len; ++i) {
    Item *item = items->data[i];
    if (item->label != NULL && item->label->piece < 0)
      error("`%.*s': a label within an expression is not supported", NAMES(func->ident->ident));
  }

  set_state(0);
  loop_depth = cur_depth;
  ADD_CODE(OP_LOOP, WT_VOID);
  ++cur_depth;
  for (int i = 0; i < piece_count; ++i)
    ADD_CODE(OP_BLOCK, WT_VOID);
  cur_depth += piece_count;

  FuncExtra *extra = func->extra;
  gen_expr(extra->state, true);
  ADD_CODE(OP_BR_TABLE);
  ADD_ULEB128(piece_count - 1);
  for (int i = 0; i < piece_count; ++i)
    ADD_ULEB128(i);
  ADD_CODE(OP_END);
  --cur_depth;

  current_piece = 0;
  for (int i = 0; i < items->len; ++i) {
    Item *item = items->data[i];
    curscope = item->scope;
    switch (item->kind) {
    case IT_STMT:  gen_stmt(item->stmt, false); break;
    case IT_EXPR:  gen_expr_stmt(item->expr); break;
    case IT_LABEL:
      ADD_CODE(OP_END);
      --cur_depth;
      current_piece = item->label->piece;
      break;
    case IT_JUMP:  gen_jump(item->label, current_piece); break;
    case IT_JUMP_IF:  gen_jump_if(item, current_piece); break;
    case IT_SWITCH:  gen_jumps_of_switch(item, current_piece); break;
    }
  }
  ADD_CODE(OP_END);
  --cur_depth;
  assert(cur_depth == loop_depth);
  curscope = saved;
}
