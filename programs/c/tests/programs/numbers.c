// Conversions, compound assignments and constants.
#include <math.h>
#include <stdio.h>

enum color { RED, GREEN };
double whole = 18446744073709551615UL;

int main(void) {
  char c = 100;
  c <<= 1;
  printf("%d", c);
  c = 5;
  c *= 1.5;
  c += 200.7;
  printf(" %d", c);
  short s = -1;
  s >>= 1;
  unsigned char u = 200;
  u >>= 1;
  unsigned short v = 65535;
  unsigned short *p = &v;
  int sum = (*p)++ + ++*p;
  _Bool b = 0;
  b += 5;
  printf(" %d %d %d %d %d", s, u, v, sum, b);
  b--;
  printf(" %d\n", b--);
  signed char top = 127, *at = &top;
  int after = ++*at;
  printf("%d %d\n", after, b);

  printf("%d %d %d %d\n", -1 < 1u, -1L < 1u, -1 < (unsigned char)1, (1 ? -1 : 1u) > 0);
  printf("%lld %u %ld %d\n", (long long)(-1 + 0u), -5 / 2u, (-5L) / 2u, 5 % -3);
  printf("%lu %f %d %u %d %d\n", (unsigned long)1.8e19, whole, (int)3e9, (unsigned)-1.0, (unsigned char)300.0, (char)-200.5);
  volatile double large = 3e9, minus = -1.0, nothing = NAN;
  printf("%d %u %d %d %lu %ld\n", (int)large, (unsigned)minus, (unsigned char)(large - 3e9 + 300), (int)nothing,
         (unsigned long)(large * 5e9), (long)(large * 1e12));
  float f = 0.1;
  printf("%d %d %d %.20f\n", 0.1 + 0.2 == 0.3, 0.1f == 0.1, f == 0.1f, 0.1f * 3);
  printf("%d%d%d%d%d\n", nothing < 1, !(nothing < 1), !(nothing >= 1), nothing == nothing, nothing != nothing);
  int turns = 0;
  while (!(nothing < turns) && turns < 3) turns++;
  printf("%d %g %g\n", turns, minus * 0, 0.0 * -1);

  printf("%zu %zu %d %d\n", sizeof('a'), sizeof(1 == 1), '\377', _Generic('a', int: 1, char: 2));
  enum color color = RED;
  color--;
  printf("%d %d\n", color > 0, GREEN - 2 < 0);
  size_t hash = 5381;
  for (const char *text = "hello world"; *text; text++) hash = hash * 33 + *text;
  printf("%zu\n", hash);
  return 0;
}
