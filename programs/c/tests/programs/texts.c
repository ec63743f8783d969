// printf, scanf and strtod as in glibc.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void real(const char *text) {
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  printf("%g %d %d\n", value, (int)(end - text), errno);
}

int main(void) {
  printf("[%a][%.2a][%A][%20a]\n", 1.0, 3.14159, 0.1, -2.5);
  printf("[%#o][%#.5o][%#.0o][%#08x][%+.3d]\n", 8, 8, 0, 255, 7);
  printf("[%-8.3f][%08.3f][%g][%#g][%e]\n", 2.5, -2.5, 1e-5, 1.0, 12345.678);
  real("0x1.8p3x");
  real("0xg");
  real("1e400");
  real("1e-400");
  real("nan(12)z");
  real("-.5e");
  unsigned u = 7;
  double d = 7;
  size_t z = 7;
  printf("%d", sscanf("0x 18446744073709551615 .5", "%x %zu %lf", &u, &z, &d));
  printf(" %u %zu %g\n", u, z, d);
  printf("%.7g %.7g %d\n", sqrtf(2.1), sinf(1e8), fpclassify(1e-310));
  return 0;
}
