// Any `goto`, any place of a `case`, any value of a `switch`.
#include <stdio.h>

static int back(int n) {
  int i = 0, sum = 0;
again:
  sum += i;
  i++;
  if (i < n) goto again;
  return sum;
}

static int into(int n) {
  int sum = 0;
  if (n > 2) goto inside;
  for (int i = 0; i < 3; i++) {
    sum += 10;
  inside:
    sum++;
    if (n > 2) {
      n = 0;
      i = 1;
      continue;
    }
  }
  return sum;
}

static int out(int n) {
  int i, j;
  for (i = 0; i < n; i++) {
    for (j = 0; j < n; j++) {
      if (i * j == 6) goto found;
    }
  }
  return -1;
found:
  return i * 10 + j;
}

static int duff(int n) {
  int count = 0, turns = (n + 3) / 4;
  switch (n % 4) {
  case 0:
    do {
      count++;
    case 3: count++;
    case 2: count++;
    case 1: count++;
    } while (--turns > 0);
  }
  return count;
}

static int within(int x) {
  switch (x) {
  case 0:
    if (1) {
    case 1: return 5;
    }
  case 2: {
    int y = 3;
    return y;
  }
  default: return 9;
  }
}

static int wide(long v) {
  switch (v) {
  case 1: return 1;
  case 2: return 2;
  case 3: return 3;
  case 4: return 4;
  case 5 ... 9: return 5;
  }
  return 0;
}

static int high(unsigned v) {
  switch (v) {
  case 0xfffffffe: return 1;
  case 0xffffffff: return 2;
  case 0xfffffffd: return 3;
  case 0xfffffffc: return 4;
  default: return 9;
  }
}

static int turns(void) {
  int i = 0;
  do {
    i++;
    continue;
  } while (i < 3);
  return i;
}

static int arrays(int n) {
  int odd = 0;
  for (int i = 0; i < n; i++) {
    int list[i + 1000];
    list[i] = i;
    if (i % 2 == 0) continue;
    odd += list[i] & 1;
  }
  return odd;
}

int main(int count, char **arguments) {
  static int runs;
  printf("%d %d %d %d %d\n", back(5), into(1), into(5), out(5), duff(7));
  printf("%d %d %d %d %d %d\n", within(0), within(1), within(2), within(3), turns(), arrays(5000));
  printf("%d %d %d %d %d %d\n", wide(4294967297L), wide(3), wide(8), high(-1), high(-2), high(3));
  return runs++ < 2 ? main(count, arguments) : 0;
}
