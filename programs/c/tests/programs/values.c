// Structures and unions by value, texts in arrays, calls before declarations, aligned memory.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct { char c; double d; short s[3]; } mixed;
typedef struct { int x; } one;
typedef union { int i; double d; char s[16]; } any;

static any greeting(void) {
  any value;
  strcpy(value.s, "hello world");
  return value;
}

static mixed changed(mixed m, int by) {
  m.c += by;
  m.d *= by;
  m.s[1] = by;
  return m;
}

static double sum(const char *kinds, ...) {
  va_list list;
  va_start(list, kinds);
  double all = 0;
  for (; *kinds; kinds++) {
    switch (*kinds) {
    case 'i': all += va_arg(list, int); break;
    case 'l': all += va_arg(list, long); break;
    case 'm': all += va_arg(list, mixed).d; break;
    case 'o': all += va_arg(list, one).x; break;
    case 'a': all += va_arg(list, any).s[1]; break;
    }
  }
  va_end(list);
  return all;
}

int main(void) {
  mixed m = {'a', 1.5, {1, 2, 3}}, n = changed(m, 3);
  printf("%s %c %g %d %c\n", greeting().s, n.c, n.d, n.s[1], m.c);
  printf("%g\n", sum("ilmoa", 1, 2L, m, (one){4}, (any){.s = "xyz"}));
  struct { char text[3], next; } short_text = {"abc", 'd'};
  char three[3] = "xyz", more[3] = "uvw";
  printf("%.4s %.3s %.3s\n", short_text.text, three, more);
  later(7);
  char *block = aligned_alloc(64, 100);
  printf("%d", (long)block % 64 == 0);
  block[99] = 5;
  block = realloc(block, 1000);
  printf(" %d\n", block[99]);
  free(block);
  return 0;
}

void later(int n) { printf("later %d\n", n); }
