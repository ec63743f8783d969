// The order in which gcc computes arguments and operands.
#include <stdio.h>

static int total = 5;

static int add(int n) {
  printf("<%d>", n);
  total += 10;
  return n;
}

int main(void) {
  printf("%d %d %d\n", add(1), add(2), add(3));
  total = 5;
  total += add(1);
  printf("%d\n", total);
  total = 5;
  total = total + add(1);
  printf("%d\n", total);
  total = 5;
  total = total - add(1);
  printf("%d\n", total);
  int i = 1, list[4] = {0};
  list[i++] += 5;
  list[i++] += i;
  printf("%d %d %d %d\n", list[1], list[2], i, total ?: 9);
  return 0;
}
