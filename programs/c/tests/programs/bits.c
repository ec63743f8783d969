// Bit fields: places, signs, initializers, changes.
#include <stdio.h>

struct bits {
  int a : 3;
  unsigned b : 5;
  signed c : 10;
  unsigned long long d : 40;
  int : 4;
  int e : 7;
  _Bool f : 1;
  unsigned char g : 3;
  int : 0;
  short h : 9;
};
struct bits global = {3, 31, -200, (1ULL << 39) + 5, -3, 1, 5, -7};
struct { short a : 15; int : 0; short b; char c; } apart = {-1, 2, 3};
struct { int a; int : 3; int b; } skipped = {1, 2};
union { int x : 5; unsigned char c; long l; } first = {-3}, last = {.l = 77};

static void show(struct bits b) {
  printf("%d %u %d %llu %d %d %d %d\n", b.a, b.b, b.c, (unsigned long long)b.d, b.e, b.f, b.g, b.h);
}

int main(void) {
  struct bits b = {3, 31, -200, (1ULL << 39) + 5, -3, 1, 5, -7};
  show(global);
  show(b);
  printf("%zu %d %d %d %d %d %d %d %ld\n", sizeof b, apart.a, apart.b, apart.c, skipped.a, skipped.b, first.x, last.x, last.l);
  b.a++;
  b.b += 40;
  b.c *= 3;
  b.d <<= 3;
  b.e--;
  b.f += 4;
  b.g -= 7;
  b.h /= 2;
  show(b);
  int old = b.a++, now = ++b.b, given = (b.c = 1000);
  printf("%d %d %d %d %d\n", old, now, given, b.f--, b.f);
  printf("%d %d\n", b.a - 1 < 0, b.b - 32 < 0);
  return 0;
}
