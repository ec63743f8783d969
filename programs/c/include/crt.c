// What every program is linked with: its start, and the functions of libc that call back.
#include <stdlib.h>
#include <string.h>

extern void __wasm_call_ctors(void);
extern int __main_argc_argv_envp(int count, char **arguments, char **environment);

__attribute__((weak)) int __main_argc_argv(int count, char **arguments) {
  return __main_argc_argv_envp(count, arguments, arguments + count);
}

__attribute__((weak)) int __main_void(void) {
  static char *arguments[] = {"main", NULL};
  return __main_argc_argv(1, arguments);
}

int __run(void) {
  __wasm_call_ctors();
  return __main_void();
}

void __call(void (*function)(void)) { function(); }

static void swap(char *a, char *b, size_t size) {
  if (size == 4) {
    int kept = *(int *)a;
    *(int *)a = *(int *)b;
    *(int *)b = kept;
    return;
  }
  for (; size > 0; --size, ++a, ++b) {
    char kept = *a;
    *a = *b;
    *b = kept;
  }
}

static void sift(char *base, size_t at, size_t count, size_t size, int (*compare)(const void *, const void *)) {
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && compare(base + child * size, base + (child + 1) * size) < 0) ++child;
    if (compare(base + at * size, base + child * size) >= 0) return;
    swap(base + at * size, base + child * size, size);
    at = child;
  }
}

// A merge sort, as glibc's: equal elements keep their order. Without memory it is a heap sort.
static void merge(char *base, size_t count, size_t size, int (*compare)(const void *, const void *), char *spare) {
  if (count < 2) return;
  size_t half = count / 2;
  merge(base, half, size, compare, spare);
  merge(base + half * size, count - half, size, compare, spare);
  char *a = base, *b = base + half * size, *middle = b, *end = base + count * size, *to = spare;
  while (a < middle && b < end) {
    char **from = compare(a, b) <= 0 ? &a : &b;
    if (size == 4) *(int *)to = *(int *)*from;
    else memcpy(to, *from, size);
    to += size;
    *from += size;
  }
  memcpy(to, a, middle - a);
  memcpy(base, spare, to + (middle - a) - spare);
}

void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *)) {
  if (count < 2 || size == 0) return;
  char *spare = malloc(count * size);
  if (spare != NULL) {
    merge(base, count, size, compare, spare);
    free(spare);
    return;
  }
  for (size_t at = count / 2; at-- > 0;) sift(base, at, count, size, compare);
  for (size_t left = count; left-- > 1;) {
    swap(base, (char *)base + left * size, size);
    sift(base, 0, left, size, compare);
  }
}

void *bsearch(const void *key, const void *base, size_t count, size_t size, int (*compare)(const void *, const void *)) {
  const char *from = base;
  while (count > 0) {
    const char *middle = from + count / 2 * size;
    int order = compare(key, middle);
    if (order == 0) return (void *)middle;
    if (order > 0) {
      from = middle + size;
      count -= count / 2 + 1;
    } else {
      count /= 2;
    }
  }
  return NULL;
}

div_t div(int a, int b) { return (div_t){a / b, a % b}; }
ldiv_t ldiv(long a, long b) { return (ldiv_t){a / b, a % b}; }
lldiv_t lldiv(long long a, long long b) { return (lldiv_t){a / b, a % b}; }
