"""Algorithms as solutions of contests have them: each gets the rows of its input, lists of whole numbers, and gives the
lines of its output. `generate.py` puts each into several forms of reading, running and printing."""

# name: (code that defines `solve`, the rows of the input)
ALGORITHMS = {}


def add(name, rows, code):
    assert name not in ALGORITHMS
    ALGORITHMS[name] = (code.strip("\n") + "\n", rows)


GRAPH = [[6, 8], [1, 2, 7], [1, 3, 9], [1, 6, 14], [2, 3, 10], [2, 4, 15], [3, 4, 11], [3, 6, 2], [4, 5, 6]]
NUMBERS = [[10], [3, 1, 4, 1, 5, 9, 2, 6, 5, 35]]
LARGE = [[5], [5_000_000_000, 7_000_000_000, 6_000_000_000, 10**15, 10**12 + 7]]

add("dijkstra", GRAPH, """
import heapq
def solve(rows):
    (n, m), edges = rows[0], rows[1:]
    graph = [[] for _ in range(n + 1)]
    for a, b, w in edges:
        graph[a].append((b, w)); graph[b].append((a, w))
    dist = [float("inf")] * (n + 1)
    dist[1] = 0
    heap = [(0, 1)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > dist[u]:
            continue
        for v, w in graph[u]:
            if d + w < dist[v]:
                dist[v] = d + w
                heapq.heappush(heap, (dist[v], v))
    return [" ".join(str(d) if d != float("inf") else "-1" for d in dist[1:])]
""")
add("dijkstra with sys.maxsize", GRAPH, """
import sys
from heapq import *
INF = sys.maxsize
def solve(rows):
    (n, m), edges = rows[0], rows[1:]
    adj = {}
    for a, b, w in edges:
        adj.setdefault(a, []).append((w * 10**9, b))
        adj.setdefault(b, []).append((w * 10**9, a))
    best = [INF] * (n + 1)
    best[1], todo = 0, [(0, 1)]
    while todo:
        cost, at = heappop(todo)
        for w, to in adj.get(at, []) if cost == best[at] else []:
            if cost + w < best[to]:
                best[to] = cost + w
                heappush(todo, (best[to], to))
    return [best[i] for i in range(1, n + 1)]
""")
add("bellman ford", GRAPH, """
import math
def solve(rows):
    n, m = rows[0]
    dist = [math.inf] * (n + 1)
    dist[1] = 0
    for _ in range(n - 1):
        for a, b, w in rows[1:]:
            if dist[a] + w < dist[b]:
                dist[b] = dist[a] + w
    return ["INF" if math.isinf(d) else d for d in dist[1:]]
""")
add("floyd warshall", GRAPH, """
from itertools import product
def solve(rows):
    n, _ = rows[0]
    inf = 10**18
    d = [[0 if i == j else inf for j in range(n)] for i in range(n)]
    for a, b, w in rows[1:]:
        d[a - 1][b - 1] = d[b - 1][a - 1] = w
    for k, i, j in product(range(n), repeat=3):
        d[i][j] = min(d[i][j], d[i][k] + d[k][j])
    return [" ".join(map(str, row)) for row in d]
""")
add("kruskal", GRAPH, """
def solve(rows):
    n, m = rows[0]
    parent = list(range(n + 1))
    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x
    total = 0
    for a, b, w in sorted(rows[1:], key=lambda e: e[2]):
        if find(a) != find(b):
            parent[find(a)] = find(b)
            total += w
    return [total]
""")
add("prim", GRAPH, """
from heapq import heappush, heappop
from collections import defaultdict
def solve(rows):
    n, m = rows[0]
    g = defaultdict(list)
    for a, b, w in rows[1:]:
        g[a] += [(w, b)]; g[b] += [(w, a)]
    seen, total, heap = set(), 0, [(0, 1)]
    while heap and len(seen) < n:
        w, u = heappop(heap)
        if u in seen: continue
        seen.add(u); total += w
        for e in g[u]: heappush(heap, e)
    return [total, len(seen)]
""")
add("union find class", GRAPH, """
class DSU:
    __slots__ = ("p", "size")
    def __init__(self, n):
        self.p = [-1] * n
    def find(self, x):
        return x if self.p[x] < 0 else self.find(self.p[x])
    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a == b: return False
        if self.p[a] > self.p[b]: a, b = b, a
        self.p[a] += self.p[b]; self.p[b] = a
        return True
def solve(rows):
    n, m = rows[0]
    d = DSU(n)
    out = [int(d.union(a - 1, b - 1)) for a, b, w in rows[1:]]
    return [*out, sum(x < 0 for x in d.p)]
""")
add("bfs grid", [[5, 6], [0, 0, 0, 1, 0, 0], [1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 0], [0, 0, 0, 0, 1, 0]], """
from collections import deque
def solve(rows):
    (h, w), grid = rows[0], rows[1:]
    dist = {(0, 0): 0}
    q = deque([(0, 0)])
    while q:
        y, x = q.popleft()
        for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            ny, nx = y + dy, x + dx
            if 0 <= ny < h and 0 <= nx < w and not grid[ny][nx] and (ny, nx) not in dist:
                dist[ny, nx] = dist[y, x] + 1
                q.append((ny, nx))
    return [dist.get((h - 1, w - 1), -1), max(dist.values()), len(dist)]
""")
add("flood fill recursive", [[4, 5], [1, 1, 0, 0, 1], [1, 0, 0, 1, 1], [0, 0, 1, 0, 0], [1, 0, 1, 1, 1]], """
import sys
sys.setrecursionlimit(10**6)
def solve(rows):
    grid = [row[:] for row in rows[1:]]
    def fill(y, x):
        if not (0 <= y < len(grid) and 0 <= x < len(grid[0])) or grid[y][x] != 1:
            return 0
        grid[y][x] = 2
        return 1 + fill(y + 1, x) + fill(y - 1, x) + fill(y, x + 1) + fill(y, x - 1)
    sizes = [s for y in range(len(grid)) for x in range(len(grid[0])) if (s := fill(y, x))]
    return [len(sizes), max(sizes), *sorted(sizes)]
""")
add("topological sort", GRAPH, """
from graphlib import TopologicalSorter
def solve(rows):
    graph = {}
    for a, b, _ in rows[1:]:
        graph.setdefault(b, set()).add(a)
    order = tuple(TopologicalSorter(graph).static_order())
    place = {v: i for i, v in enumerate(order)}
    return [len(order), all(place[a] < place[b] for a, b, _ in rows[1:])]
""")
add("kahn", GRAPH, """
from collections import deque
def solve(rows):
    n, m = rows[0]
    after, degree = [[] for _ in range(n)], [0] * n
    for a, b, _ in rows[1:]:
        after[a - 1].append(b - 1); degree[b - 1] += 1
    ready, order = deque(i for i in range(n) if not degree[i]), []
    while ready:
        order.append(u := ready.popleft())
        for v in after[u]:
            degree[v] -= 1
            if not degree[v]: ready.append(v)
    return [" ".join(str(i + 1) for i in order)]
""")
add("tarjan", [[5, 5], [1, 2, 0], [2, 3, 0], [3, 1, 0], [3, 4, 0], [4, 5, 0]], """
def solve(rows):
    n, m = rows[0]
    g = [[] for _ in range(n + 1)]
    for a, b, _ in rows[1:]: g[a].append(b)
    index, low, on, stack, out = {}, {}, set(), [], []
    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v); on.add(v)
        for w in g[v]:
            if w not in index:
                visit(w); low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while True:
                w = stack.pop(); on.discard(w); part.append(w)
                if w == v: break
            out.append(sorted(part))
    for v in range(1, n + 1):
        if v not in index: visit(v)
    return [len(out)] + [" ".join(map(str, p)) for p in sorted(out)]
""")
add("bipartite matching", [[3, 3], [1, 1, 0], [1, 0, 0], [0, 1, 1]], """
def solve(rows):
    (n, m), can = rows[0], rows[1:]
    match = [-1] * m
    def augment(u, seen):
        return any(
            v not in seen and not seen.add(v) and (match[v] < 0 or augment(match[v], seen)) and [match.__setitem__(v, u)]
            for v in range(m) if can[u][v]
        )
    return [sum(augment(u, set()) for u in range(n))]
""")
add("max flow", [[4, 5], [1, 2, 3], [1, 3, 2], [2, 3, 5], [2, 4, 2], [3, 4, 3]], """
from collections import deque, defaultdict
def solve(rows):
    n, m = rows[0]
    cap = defaultdict(lambda: defaultdict(int))
    for a, b, c in rows[1:]:
        cap[a][b] += c; cap[b][a] += 0
    flow = 0
    while True:
        came, q = {1: None}, deque([1])
        while q and n not in came:
            u = q.popleft()
            for v, c in cap[u].items():
                if c > 0 and v not in came:
                    came[v] = u; q.append(v)
        if n not in came: return [flow]
        path, v = [], n
        while came[v] is not None:
            path.append((came[v], v)); v = came[v]
        least = min(cap[a][b] for a, b in path)
        for a, b in path:
            cap[a][b] -= least; cap[b][a] += least
        flow += least
""")
add("lis bisect", NUMBERS, """
from bisect import bisect_left
def solve(rows):
    tails = []
    for x in rows[1]:
        i = bisect_left(tails, x)
        if i == len(tails): tails.append(x)
        else: tails[i] = x
    return [len(tails)]
""")
add("bisect with a key over a large range", [[1], [10**16]], """
import bisect
def solve(rows):
    n = rows[1][0]
    root = bisect.bisect_right(range(10**12), n, key=lambda x: x * x) - 1
    return [root, len(range(0, n, 3)), range(10**12)[10**11], range(0, 10**13, 7).index(7 * 10**11)]
""")
add("binary search on the answer", LARGE, """
def solve(rows):
    need, speeds = 10**17, [x // 10**6 for x in rows[1]]
    lo, hi = 0, 10**18
    while lo < hi:
        mid = (lo + hi) // 2
        if sum(mid // s * s for s in speeds) >= need: hi = mid
        else: lo = mid + 1
    return [lo]
""")
add("least with sys.maxsize", LARGE, """
import sys
def solve(rows):
    least, most = sys.maxsize, -sys.maxsize - 1
    for x in rows[1]:
        least, most = min(least, x), max(most, x)
    return [least, most, sys.maxsize]
""")
add("merge sort inversions", NUMBERS, """
def solve(rows):
    def sort(a):
        if len(a) < 2: return a, 0
        half = len(a) // 2
        left, x = sort(a[:half]); right, y = sort(a[half:])
        out, i, j, count = [], 0, 0, x + y
        while i < len(left) and j < len(right):
            if left[i] <= right[j]: out.append(left[i]); i += 1
            else: out.append(right[j]); j += 1; count += len(left) - i
        return out + left[i:] + right[j:], count
    ordered, count = sort(rows[1])
    return [count, " ".join(map(str, ordered))]
""")
add("quick sort", NUMBERS, """
import random
random.seed(7)
def solve(rows):
    def sort(a):
        if len(a) <= 1: return a
        p = random.choice(a)
        return sort([x for x in a if x < p]) + [x for x in a if x == p] + sort([x for x in a if x > p])
    return [" ".join(map(str, sort(rows[1])))]
""")
add("heap sort", NUMBERS, """
import heapq
def solve(rows):
    h = list(rows[1]); heapq.heapify(h)
    return [*(heapq.heappop(h) for _ in range(len(h))), heapq.nlargest(3, rows[1]), heapq.nsmallest(2, rows[1], key=lambda x: -x)]
""")
add("counting", NUMBERS, """
from collections import Counter
def solve(rows):
    c = Counter(rows[1])
    c.update([9, 9]); c.subtract({1: 1})
    return [c.most_common(2), sum(c.values()), sorted(c.items()), (c & Counter([9, 9, 9])).total()]
""")
add("two sum", NUMBERS, """
def solve(rows):
    seen = {}
    for i, x in enumerate(rows[1]):
        if 11 - x in seen: return [f"{seen[11 - x]} {i}"]
        seen[x] = i
    return [-1]
""")
add("sliding window", NUMBERS, """
from collections import deque
def solve(rows):
    a, k, q, out = rows[1], 3, deque(), []
    for i, x in enumerate(a):
        while q and a[q[-1]] <= x: q.pop()
        q.append(i)
        if q[0] <= i - k: q.popleft()
        if i >= k - 1: out.append(a[q[0]])
    return [" ".join(map(str, out))]
""")
add("monotonic stack", NUMBERS, """
def solve(rows):
    h, stack, best = rows[1] + [0], [], 0
    for i, x in enumerate(h):
        start = i
        while stack and stack[-1][1] >= x:
            start, height = stack.pop()
            best = max(best, height * (i - start))
        stack.append((start, x))
    return [best]
""")
add("kadane", [[8], [-2, 1, -3, 4, -1, 2, 1, -5]], """
from itertools import accumulate
def solve(rows):
    return [max(accumulate(rows[1], lambda a, x: max(x, a + x))), *accumulate(rows[1])]
""")
add("prefix sums in two dimensions", [[3, 3], [1, 2, 3], [4, 5, 6], [7, 8, 9]], """
def solve(rows):
    (h, w), a = rows[0], rows[1:]
    s = [[0] * (w + 1) for _ in range(h + 1)]
    for y in range(h):
        for x in range(w):
            s[y + 1][x + 1] = a[y][x] + s[y][x + 1] + s[y + 1][x] - s[y][x]
    return [s[3][3] - s[1][3] - s[3][1] + s[1][1], *map(sum, zip(*a))]
""")
add("fenwick tree", NUMBERS, """
class Fenwick:
    def __init__(self, n): self.t = [0] * (n + 1)
    def add(self, i, x):
        i += 1
        while i < len(self.t): self.t[i] += x; i += i & -i
    def sum(self, i):
        s = 0
        while i: s += self.t[i]; i -= i & -i
        return s
def solve(rows):
    f = Fenwick(len(rows[1]))
    for i, x in enumerate(rows[1]): f.add(i, x * 10**9)
    f.add(3, -5)
    return [f.sum(i) for i in range(0, 11, 5)]
""")
add("segment tree", NUMBERS, """
class SegmentTree:
    def __init__(self, values, op, unit):
        self.n, self.op, self.unit = len(values), op, unit
        self.t = [unit] * self.n + list(values)
        for i in range(self.n - 1, 0, -1): self.t[i] = op(self.t[2 * i], self.t[2 * i + 1])
    def query(self, l, r):
        a = b = self.unit
        l += self.n; r += self.n
        while l < r:
            if l & 1: a = self.op(a, self.t[l]); l += 1
            if r & 1: r -= 1; b = self.op(self.t[r], b)
            l >>= 1; r >>= 1
        return self.op(a, b)
def solve(rows):
    t = SegmentTree(rows[1], max, -10**18)
    return [t.query(0, 4), t.query(4, 10), t.query(2, 3)]
""")
add("sparse table", NUMBERS, """
def solve(rows):
    a = rows[1]
    t = [a]
    while (1 << len(t)) <= len(a):
        half = 1 << len(t) - 1
        t.append([min(x, y) for x, y in zip(t[-1], t[-1][half:])])
    def least(l, r):
        k = (r - l).bit_length() - 1
        return min(t[k][l], t[k][r - (1 << k)])
    return [least(0, 10), least(4, 8), least(6, 7)]
""")
add("knapsack", [[3], [60, 10], [100, 20], [120, 30]], """
def solve(rows):
    best = [0] * 51
    for value, weight in rows[1:]:
        for w in range(50, weight - 1, -1):
            best[w] = max(best[w], best[w - weight] + value)
    return [best[-1]]
""")
add("coin change", [[3], [1, 5, 7]], """
from functools import lru_cache
import sys
sys.setrecursionlimit(100000)
def solve(rows):
    coins = rows[1]
    @lru_cache(maxsize=None)
    def least(n):
        return 0 if n == 0 else min(least(n - c) + 1 for c in coins if c <= n)
    ways = [1] + [0] * 100
    for c in coins:
        for n in range(c, 101): ways[n] += ways[n - c]
    return [least(43), ways[100], least.cache_info().currsize]
""")
add("lcs", [[2], [1, 3, 4, 1, 2, 3, 9], [3, 4, 1, 2, 1, 3]], """
from functools import cache
def solve(rows):
    a, b = rows[1], rows[2]
    @cache
    def lcs(i, j):
        if i == len(a) or j == len(b): return 0
        if a[i] == b[j]: return 1 + lcs(i + 1, j + 1)
        return max(lcs(i + 1, j), lcs(i, j + 1))
    return [lcs(0, 0)]
""")
add("edit distance", [[2], [1, 3, 4, 1, 2, 3, 9], [3, 4, 1, 2, 1, 3]], """
def solve(rows):
    a, b = rows[1:]
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return [row[-1]]
""")
add("longest palindrome", [[9], [1, 2, 3, 2, 1, 4, 1, 2, 3]], """
def solve(rows):
    s, best = rows[1], []
    for i in range(len(s)):
        for l, r in ((i, i), (i, i + 1)):
            while l >= 0 and r < len(s) and s[l] == s[r]: l -= 1; r += 1
            best = max(best, s[l + 1:r], key=len)
    return ["".join(map(str, best))]
""")
add("matrix chain", [[5], [40, 20, 30, 10, 30]], """
from functools import lru_cache
def solve(rows):
    d = rows[1]
    @lru_cache(None)
    def cost(i, j):
        if j - i < 2: return 0
        return min(cost(i, k) + cost(k, j) + d[i] * d[k] * d[j] for k in range(i + 1, j))
    return [cost(0, len(d) - 1)]
""")
add("travelling salesman bitmask", [[4], [0, 10, 15, 20], [10, 0, 35, 25], [15, 35, 0, 30], [20, 25, 30, 0]], """
def solve(rows):
    n, d = rows[0][0], rows[1:]
    best = {(1, 0): 0}
    for mask in range(1, 1 << n, 2):
        for last in range(n):
            if (mask, last) not in best: continue
            for to in range(n):
                if not mask >> to & 1:
                    key, value = (mask | 1 << to, to), best[mask, last] + d[last][to]
                    best[key] = min(best.get(key, 1 << 60), value)
    return [min(best[(1 << n) - 1, i] + d[i][0] for i in range(1, n))]
""")
add("digit dp", [[1], [10**18]], """
from functools import lru_cache
def solve(rows):
    s = str(rows[1][0])
    @lru_cache(None)
    def count(i, tight, last):
        if i == len(s): return 1
        top = int(s[i]) if tight else 9
        return sum(count(i + 1, tight and d == top, d) for d in range(top + 1) if d != 4 and not (last == 1 and d == 3))
    return [count(0, True, -1)]
""")
add("sieve", [[1], [100]], """
def solve(rows):
    n = rows[1][0]
    is_prime = bytearray([1]) * (n + 1)
    is_prime[:2] = b"\\0\\0"
    for p in range(2, int(n ** 0.5) + 1):
        if is_prime[p]: is_prime[p * p::p] = bytes(len(range(p * p, n + 1, p)))
    primes = [i for i, p in enumerate(is_prime) if p]
    return [len(primes), primes[-1], sum(primes)]
""")
add("miller rabin", LARGE, """
def is_prime(n):
    if n < 2: return False
    for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        if n % p == 0: return n == p
    d, s = n - 1, 0
    while d % 2 == 0: d //= 2; s += 1
    for a in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(a, d, n)
        if x in (1, n - 1): continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1: break
        else: return False
    return True
def solve(rows):
    return [is_prime(x) for x in rows[1]] + [is_prime(10**18 + 9), is_prime(2**61 - 1), is_prime(2**67 - 1)]
""")
add("pollard rho", [[3], [10**12 + 39, 600851475143, 2**40 + 15]], """
import math, random
def factor(n):
    if n == 1: return []
    for p in range(2, 50):
        if n % p == 0: return [p] + factor(n // p)
    if all(pow(a, n - 1, n) == 1 for a in (2, 3, 5, 7)): return [n]
    random.seed(n)
    while True:
        x = y = random.randrange(2, n); c = random.randrange(1, n); d = 1
        while d == 1:
            x = (x * x + c) % n
            y = (y * y + c) % n; y = (y * y + c) % n
            d = math.gcd(x - y, n)
        if d != n: return sorted(factor(d) + factor(n // d))
def solve(rows):
    return [" ".join(map(str, sorted(factor(x)))) for x in rows[1]]
""")
add("number theory", [[4], [12, 18, 27, 35]], """
import math
from functools import reduce
def ext(a, b): return (a, 1, 0) if b == 0 else (lambda g, x, y: (g, y, x - a // b * y))(*ext(b, a % b))
def solve(rows):
    a = rows[1]
    return [math.gcd(*a), math.lcm(*a), reduce(math.gcd, a), ext(240, 46), pow(3, -1, 11), math.isqrt(10**20 + 1), math.comb(60, 30), math.perm(10, 3)]
""")
add("binomials modulo a prime", [[3], [10, 3], [1000, 500], [100000, 4]], """
MOD = 10**9 + 7
def solve(rows):
    n = 100001
    fact = [1] * n
    for i in range(1, n): fact[i] = fact[i - 1] * i % MOD
    inv = [1] * n
    inv[-1] = pow(fact[-1], MOD - 2, MOD)
    for i in range(n - 1, 0, -1): inv[i - 1] = inv[i] * i % MOD
    return [fact[a] * inv[b] % MOD * inv[a - b] % MOD for a, b in rows[1:]]
""")
add("chinese remainders", [[3], [2, 3], [3, 5], [2, 7]], """
from functools import reduce
def solve(rows):
    def join(one, other):
        (a, m), (b, n) = one, other
        return (a + (b - a) * pow(m, -1, n) % n * m) % (m * n), m * n
    return [reduce(join, map(tuple, rows[1:]))]
""")
add("matrix power", [[1], [10**18]], """
MOD = 998244353
def mul(a, b): return [[sum(x * y for x, y in zip(row, col)) % MOD for col in zip(*b)] for row in a]
def solve(rows):
    n, base, out = rows[1][0], [[1, 1], [1, 0]], [[1, 0], [0, 1]]
    while n:
        if n & 1: out = mul(out, base)
        base, n = mul(base, base), n >> 1
    return [out[0][1], out]
""")
add("large numbers", [[2], [100, 1000]], """
import math, sys
sys.set_int_max_str_digits(0)
def solve(rows):
    a, b = 0, 1
    for _ in range(rows[1][0]): a, b = b, a + b
    return [a, math.factorial(50), len(str(math.factorial(rows[1][1]))), 2**200 % 1000007, sum(map(int, str(3**500))), -7 // 2, -7 % 3, (1 << 70).bit_length(), int("ff" * 9, 16), (10**30).bit_count()]
""")
add("fractions", [[3], [1, 2], [1, 3], [5, 6]], """
from fractions import Fraction as F
def solve(rows):
    total = sum((F(a, b) for a, b in rows[1:]), F(0))
    return [total, total.numerator, total.denominator, float(total), F("0.125"), F(3.5).limit_denominator(10), max(F(1, 3), F(2, 5)), len({F(1, 2), F(2, 4)})]
""")
add("decimals", [[1], [7]], """
from decimal import Decimal, getcontext, ROUND_HALF_UP
getcontext().prec = 50
def solve(rows):
    n = Decimal(rows[1][0])
    return [n.sqrt(), (n / 3).quantize(Decimal("0.001"), ROUND_HALF_UP), Decimal("0.1") + Decimal("0.2"), Decimal(2) ** 100, n.ln()]
""")
add("determinant", [[3], [2, 0, 1], [1, 3, 2], [1, 1, 4]], """
from fractions import Fraction
def solve(rows):
    m, det = [[Fraction(x) for x in row] for row in rows[1:]], Fraction(1)
    for i in range(len(m)):
        pivot = next((r for r in range(i, len(m)) if m[r][i]), None)
        if pivot is None: return [0]
        if pivot != i: m[i], m[pivot] = m[pivot], m[i]; det = -det
        det *= m[i][i]
        for r in range(i + 1, len(m)):
            f = m[r][i] / m[i][i]
            m[r] = [a - f * b for a, b in zip(m[r], m[i])]
    return [det]
""")
add("xor basis", [[5], [3, 10, 5, 2**40 + 1, 2**40 + 6]], """
def solve(rows):
    basis = []
    for x in rows[1]:
        for b in basis: x = min(x, x ^ b)
        if x: basis.append(x); basis.sort(reverse=True)
    best = 0
    for b in basis: best = max(best, best ^ b)
    return [len(basis), best]
""")
add("subsets", [[4], [3, 34, 4, 12]], """
from itertools import chain, combinations, permutations
def solve(rows):
    a = rows[1]
    subsets = list(chain.from_iterable(combinations(a, k) for k in range(len(a) + 1)))
    return [len(subsets), sorted({sum(s) for s in subsets}), sum(1 for p in permutations(a) if p[0] < p[1]), list(map(sum, combinations(a, 3)))]
""")
add("queens", [[1], [6]], """
def solve(rows):
    n, found = rows[1][0], []
    def place(row, columns, left, right, taken):
        if row == n: found.append(taken); return
        for c in range(n):
            if not (columns >> c & 1 or left >> row + c & 1 or right >> row - c + n & 1):
                place(row + 1, columns | 1 << c, left | 1 << row + c, right | 1 << row - c + n, taken + [c])
    place(0, 0, 0, 0, [])
    return [len(found), found[0]]
""")
add("meet in the middle", [[6], [10**12, 3 * 10**12, 7, 11 * 10**11, 5 * 10**12, 13]], """
from bisect import bisect_right
def sums(a):
    out = [0]
    for x in a: out += [s + x for s in out]
    return out
def solve(rows):
    a, limit = rows[1], 61 * 10**11
    left, right = sums(a[:3]), sorted(sums(a[3:]))
    return [max(s + right[bisect_right(right, limit - s) - 1] for s in left if s <= limit)]
""")
add("josephus", [[1], [41, 3]], """
from collections import deque
def solve(rows):
    n, k = rows[1]
    q = deque(range(1, n + 1)); out = []
    while q:
        q.rotate(-(k - 1)); out.append(q.popleft())
    return [out[-1], " ".join(map(str, out[:5]))]
""")
add("running median", NUMBERS, """
from heapq import heappush, heappushpop
def solve(rows):
    low, high, out = [], [], []
    for x in rows[1]:
        if len(low) == len(high): heappush(low, -heappushpop(high, x))
        else: heappush(high, -heappushpop(low, -x))
        out.append(-low[0] if len(low) > len(high) else (high[0] - low[0]) / 2)
    return [" ".join(map(str, out))]
""")
add("lru cache class", [[2], [1, 2, 3, 1, 4, 1, 5, 2, 3]], """
from collections import OrderedDict
class LRU(OrderedDict):
    def __init__(self, size): super().__init__(); self.size = size
    def get(self, key):
        if key not in self: return -1
        self.move_to_end(key); return self[key]
    def put(self, key, value):
        self[key] = value; self.move_to_end(key)
        if len(self) > self.size: self.popitem(last=False)
def solve(rows):
    cache, out = LRU(2), []
    for x in rows[1]:
        out.append(cache.get(x)); cache.put(x, x * x)
    return [out, list(cache)]
""")
add("trie", NUMBERS, """
def solve(rows):
    root = {}
    for x in map(str, rows[1]):
        node = root
        for c in x: node = node.setdefault(c, {})
        node["$"] = node.get("$", 0) + 1
    def words(node, prefix=""):
        for c in sorted(node):
            if c == "$": yield prefix, node["$"]
            else: yield from words(node[c], prefix + c)
    return [*map(str, words(root))]
""")
add("binary tree", NUMBERS, """
from dataclasses import dataclass
from typing import Optional
@dataclass
class Node:
    value: int
    left: Optional["Node"] = None
    right: Optional["Node"] = None
def insert(node, x):
    if node is None: return Node(x)
    if x < node.value: node.left = insert(node.left, x)
    else: node.right = insert(node.right, x)
    return node
def depth(node): return 0 if node is None else 1 + max(depth(node.left), depth(node.right))
def inorder(node):
    if node:
        yield from inorder(node.left); yield node.value; yield from inorder(node.right)
def solve(rows):
    root = None
    for x in rows[1]: root = insert(root, x)
    return [depth(root), " ".join(map(str, inorder(root))), root.left]
""")
add("linked list", NUMBERS, """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next
def solve(rows):
    head = None
    for x in range(20000): head = ListNode(x, head)
    prev = None
    while head: head.next, prev, head = prev, head, head.next
    out = []
    while prev and len(out) < 5: out.append(prev.val); prev = prev.next
    return [" ".join(map(str, out))]
""")
add("deep recursion", [[1], [30000]], """
import sys
sys.setrecursionlimit(10**6)
def solve(rows):
    n = rows[1][0]
    children = [[i + 1] for i in range(n)] + [[]]
    def size(v):
        total = 1
        for c in children[v]: total += size(c)
        return total
    return [size(0)]
""")
add("memoised recursion", [[1], [900]], """
import sys
from functools import lru_cache
sys.setrecursionlimit(10**5)
@lru_cache(maxsize=None)
def fib(n): return n if n < 2 else (fib(n - 1) + fib(n - 2)) % (10**9 + 7)
@lru_cache
def steps(n, k=3): return 1 if n == 0 else sum(steps(n - i, k) for i in range(1, min(n, k) + 1)) % 1000003
def solve(rows):
    for i in range(0, rows[1][0], 50): steps(i)
    return [fib(rows[1][0]), steps(300), fib.cache_info().currsize]
""")
add("recursion in generator expressions", [[1], [400]], """
import sys
sys.setrecursionlimit(20000)
def solve(rows):
    n = rows[1][0]
    tree = {i: [i + 1] for i in range(n)} | {n: []}
    def height(v): return 1 + max((height(c) for c in tree[v]), default=0)
    def total(v): return v + sum(total(c) for c in tree[v])
    def every(v): return all(every(c) for c in tree[v])
    return [height(0), total(0), every(0)]
""")
add("convex hull", [[6], [0, 0], [4, 0], [4, 4], [0, 4], [2, 2], [1, 3]], """
def solve(rows):
    points = sorted(map(tuple, rows[1:]))
    def half(points):
        out = []
        for p in points:
            while len(out) > 1 and (out[-1][0] - out[-2][0]) * (p[1] - out[-2][1]) - (out[-1][1] - out[-2][1]) * (p[0] - out[-2][0]) <= 0: out.pop()
            out.append(p)
        return out[:-1]
    hull = half(points) + half(points[::-1])
    area = sum(a[0] * b[1] - a[1] * b[0] for a, b in zip(hull, hull[1:] + hull[:1])) / 2
    return [hull, area]
""")
add("geometry with complex numbers", [[3], [0, 0], [3, 0], [3, 4]], """
import cmath, math
def solve(rows):
    z = [complex(*p) for p in rows[1:]]
    return [abs(z[2] - z[0]), f"{cmath.phase(z[2]):.6f}", round(math.degrees(cmath.phase(z[2] - z[1])), 6), math.dist(*rows[1:3]), math.hypot(5, 12), z[1] * z[2]]
""")
add("intervals", [[4], [1, 3], [2, 6], [8, 10], [15, 18]], """
def solve(rows):
    out = []
    for lo, hi in sorted(rows[1:]):
        if out and lo <= out[-1][1]: out[-1][1] = max(out[-1][1], hi)
        else: out.append([lo, hi])
    return [out, sum(b - a for a, b in out)]
""")
add("scheduling with dataclasses", [[4], [3, 10, 1], [1, 20, 2], [2, 5, 3], [1, 7, 4]], """
from dataclasses import dataclass, field, asdict, replace
import heapq
@dataclass(order=True)
class Job:
    priority: int
    time: int
    name: int = field(compare=False)
def solve(rows):
    heap = [Job(*row) for row in rows[1:]]
    heapq.heapify(heap)
    order = [heapq.heappop(heap) for _ in range(len(rows) - 1)]
    return [[j.name for j in order], asdict(order[0]), replace(order[0], time=1)]
""")
add("sorting with keys", [[4], [3, 1], [1, 2], [3, 0], [2, 9]], """
from functools import cmp_to_key
from operator import itemgetter, attrgetter
from collections import namedtuple
P = namedtuple("P", "x y")
def solve(rows):
    p = [P(*row) for row in rows[1:]]
    return [sorted(p), sorted(p, key=itemgetter(1)), sorted(p, key=attrgetter("x"), reverse=True), sorted(p, key=cmp_to_key(lambda a, b: (a.y - b.y) or (b.x - a.x)))[0], min(p, key=lambda q: (q.x, -q.y))._asdict()]
""")
add("largest number from parts", NUMBERS, """
from functools import cmp_to_key
def solve(rows):
    return ["".join(sorted(map(str, rows[1]), key=cmp_to_key(lambda a, b: (a + b < b + a) - (a + b > b + a))))]
""")
add("itertools", NUMBERS, """
from itertools import *
def solve(rows):
    a = rows[1]
    return [list(islice(cycle(a), 3, 8)), [(k, len(list(g))) for k, g in groupby(sorted(a))], list(pairwise(a))[:2], list(takewhile(lambda x: x < 5, a)), list(zip_longest(a[:2], a[:3], fillvalue=0)), list(compress(a, cycle([1, 0]))), next(islice(count(10**12), 10**3, None)), list(batched(a, 4))[-1], list(starmap(pow, [(2, 5), (3, 2)])), list(islice(repeat(7, 10**12), 2)), list(islice(a, 10**10))[-1]]
""")
add("generators and coroutines", NUMBERS, """
def average():
    total = count = 0
    value = None
    while True:
        value = yield value
        if value is None: return total
        total += value; count += 1
        value = total / count
def solve(rows):
    c = average(); next(c)
    out = [c.send(x) for x in rows[1]]
    try: c.send(None)
    except StopIteration as end: out.append(end.value)
    def squares():
        yield from (x * x for x in rows[1])
        return 1
    return [out, sum(squares()), max(squares(), default=0)]
""")
add("classes", NUMBERS, """
from abc import ABC, abstractmethod
from enum import Enum, auto
from functools import total_ordering
class Color(Enum):
    RED = auto(); BLUE = auto()
class Shape(ABC):
    count = 0
    def __init__(self): type(self).count += 1
    @abstractmethod
    def area(self): ...
    @property
    def double(self): return 2 * self.area()
class Square(Shape):
    def __init__(self, a): super().__init__(); self.a = a
    def area(self): return self.a ** 2
@total_ordering
class V:
    def __init__(self, x): self.x = x
    def __eq__(self, o): return self.x == o.x
    def __lt__(self, o): return self.x < o.x
    def __hash__(self): return hash((self.x, "v"))
    def __repr__(self): return f"V({self.x})"
def solve(rows):
    shapes = [Square(x) for x in rows[1]]
    return [sum(s.area() for s in shapes), shapes[2].double, Square.count % len(shapes), Color.BLUE.value, list(Color), sorted(map(V, rows[1]))[:3], V(3) >= V(2), len({V(1), V(1), V(2)})]
""")
add("operators of a class", [[2], [1, 2], [3, 4]], """
class Vec:
    def __init__(self, *v): self.v = v
    def __add__(self, o): return Vec(*(a + b for a, b in zip(self.v, o.v)))
    def __mul__(self, k): return Vec(*(a * k for a in self.v))
    __rmul__ = __mul__
    def __matmul__(self, o): return sum(a * b for a, b in zip(self.v, o.v))
    def __getitem__(self, i): return self.v[i]
    def __len__(self): return len(self.v)
    def __iter__(self): return iter(self.v)
    def __contains__(self, x): return x in self.v
    def __bool__(self): return any(self.v)
    def __call__(self, i): return self.v[i]
    def __str__(self): return "<" + ", ".join(map(str, self)) + ">"
def solve(rows):
    a, b = (Vec(*row) for row in rows[1:])
    return [a + b, 3 * a, a @ b, a[1], len(a), 2 in a, bool(Vec(0, 0)), b(0), list(reversed([*a, *b]))]
""")
add("matching patterns", NUMBERS, """
def kind(x):
    match x:
        case 0 | 1: return "small"
        case int(n) if n > 9: return f"large {n}"
        case [a, *rest]: return f"list {a} {len(rest)}"
        case {"k": v}: return f"map {v}"
        case str(): return "text"
        case _: return "other"
def solve(rows):
    return [kind(x) for x in [*rows[1], [1, 2, 3], {"k": 5}, "s", None]]
""")
add("exceptions", NUMBERS, """
import contextlib
class Low(ValueError):
    def __init__(self, x): super().__init__(f"{x} is low"); self.x = x
@contextlib.contextmanager
def noted(out, name):
    out.append("in " + name)
    try: yield name
    finally: out.append("out " + name)
def check(x):
    if x < 2: raise Low(x)
    if x > 30: raise OverflowError(x)
    return 10 // (x - 2)
def solve(rows):
    out = []
    for x in rows[1]:
        try:
            with noted(out, str(x)): out.append(check(x))
        except Low as e: out.append(str(e))
        except (ZeroDivisionError, OverflowError) as e: out.append(type(e).__name__)
        else: out.append("fine")
    with contextlib.suppress(KeyError): {}[1]
    return out
""")
add("decorators", NUMBERS, """
import functools, time
def timed(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        start = time.perf_counter(); result = f(*args, **kwargs)
        inner.took = time.perf_counter() - start; inner.calls += 1
        return result
    inner.calls = 0
    return inner
def twice(n):
    def outer(f):
        return lambda *a: f(f(*a)) if n == 2 else f(*a)
    return outer
@timed
def add(a, b=1): return a + b
@twice(2)
def square(x): return x * x
def solve(rows):
    out = [add(x, b=2) for x in rows[1]]
    return [out, add.calls, add.__name__, add.took >= 0, square(3), functools.partial(pow, 2)(10), functools.reduce(lambda a, b: a * b, rows[1])]
""")
add("texts", NUMBERS, """
import string, textwrap
def solve(rows):
    s = "".join(string.ascii_lowercase[x % 26] for x in rows[1])
    table = str.maketrans("bd", "xy")
    return [s, s.translate(table), s[::-1].upper(), s.find("f"), s.count("b"), s.rjust(15, "*"), f"{s!r:>14}|{12345.678:,.2f}|{255:#x}|{7:03d}|{0.25:.0%}|{10**20:e}", "-".join(s.split("f")), s.partition("e"), "%5.1f|%-4d|%s" % (2.25, 7, [1]), textwrap.fill("a bb ccc dddd", 6), "a,b,,c".split(","), "x1y22".isalnum(), s.replace("b", "B", 1), s.zfill(12), ord("é"), "ß".upper(), s.startswith(("d", "q"))]
""")
add("regular expressions", NUMBERS, """
import re
def solve(rows):
    s = " ".join(f"k{i}={x}" for i, x in enumerate(rows[1]))
    pairs = re.findall(r"(\\w+)=(\\d+)", s)
    return [pairs[:2], re.sub(r"\\d+", lambda m: str(int(m[0]) + 1), s), re.split(r"[ =]", s, maxsplit=3), bool(re.fullmatch(r"(k\\d+=\\d+ ?)+", s)), [m.start() for m in re.finditer("k", s)], re.match(r"(?P<n>k)(?P<i>\\d)", s).groupdict(), re.compile("(?i)K9").search(s).span()]
""")
add("expression parser", [[1], [7]], """
import ast, operator
def parse(tokens):
    def factor():
        t = tokens.pop(0)
        if t == "(":
            v = expr(); tokens.pop(0); return v
        return -factor() if t == "-" else int(t)
    def term():
        v = factor()
        while tokens and tokens[0] in "*/":
            v = v * factor() if tokens.pop(0) == "*" else v // factor()
        return v
    def expr():
        v = term()
        while tokens and tokens[0] in "+-":
            v = v + term() if tokens.pop(0) == "+" else v - term()
        return v
    return expr()
def solve(rows):
    text = "( 1 + 2 ) * 3 - 4 * ( 5 - 6 ) + 100 / 7"
    return [parse(text.split()), eval(text.replace("/", "//")), ast.literal_eval("[1, {'a': (2,)}]")]
""")
add("dates", [[2], [2024, 2, 28], [1999, 12, 31]], """
from datetime import date, datetime, timedelta, timezone
import calendar
def solve(rows):
    a, b = (date(*row) for row in rows[1:])
    return [a + timedelta(days=2), (a - b).days, a.strftime("%A %d %B %Y"), b.isocalendar()[1], calendar.isleap(2024), calendar.monthrange(2023, 2), datetime.strptime("2024-03-01 12:30", "%Y-%m-%d %H:%M"), datetime.fromtimestamp(4e9, timezone.utc), a.weekday(), date.fromisoformat("2020-01-05").toordinal()]
""")
add("statistics", NUMBERS, """
import statistics as st, math
def solve(rows):
    a = rows[1]
    return [st.mean(a), st.median(a), st.mode(a), f"{st.pstdev(a):.6f}", st.quantiles(a, n=4), math.fsum([0.1] * 10), sum(a) / len(a), round(2.675, 2), round(0.5), math.prod(a), math.floor(-2.5), math.ceil(2.1), math.trunc(-2.7)]
""")
add("bits", LARGE, """
def solve(rows):
    a = rows[1]
    x = 0
    for v in a: x ^= v
    return [x, bin(a[0])[2:].count("1"), a[0].bit_length(), a[0] & -a[0], ~a[1], a[2] >> 20, (a[2] << 40) % (1 << 64), a[0] | a[1], f"{a[0]:b}", int("101" * 20, 2), (-a[0]) & 0xFFFFFFFF, a[0].to_bytes(8, "big").hex(), int.from_bytes(b"\\xff" * 8, "little", signed=True), format(a[3], "x")]
""")
add("bytes and arrays", LARGE, """
from array import array
import struct
def solve(rows):
    a = array("l", rows[1]); a.append(-1)
    b = array("q", a); c = array("i", range(5)); d = array("d", [0.5, 1.5])
    packed = struct.pack("<q", rows[1][0]) + struct.pack("l", rows[1][1])
    view = memoryview(bytearray(b"hello"))
    view[0] = ord("J")
    return [list(a), a.itemsize, sum(b), c[::-1].tolist(), d, packed.hex(), struct.unpack("<qq", packed), struct.calcsize("lP"), bytes(view), b"a,b".split(b","), bytes(range(3)), a.index(-1)]
""")
add("sets and dictionaries", NUMBERS, """
from collections import defaultdict, ChainMap
def solve(rows):
    a, b = set(rows[1]), {1, 2, 3, 100}
    d = {x: x * x for x in rows[1]}
    g = defaultdict(list)
    for x in rows[1]: g[x % 3].append(x)
    return [sorted(a & b), sorted(a - b), sorted(a ^ b), a.isdisjoint({77}), frozenset({1, 2}) <= b, list(d.items())[:3], dict(sorted(g.items())), {**d, 1: 0}[1], d | {5: 5} == d, ChainMap({1: 2}, d)[3], max(d, key=d.get), d.pop(99, None), list(reversed(d))[:2], dict(zip("ab", (1, 2)))]
""")
add("slices", NUMBERS, """
def solve(rows):
    a = rows[1][:]
    a[2:4] = [7, 7, 7]; del a[::3]
    b = a[:10**10]; first, *rest = a
    rows2 = [list(row) for row in zip(*[iter(range(6))] * 3)]
    return [a, b[-3:], a[::-2], first, len(rest), rows2, [*map(list, zip(*rows2))], a.index(7, 0, 10**12), "abc"[-10**10:10**10], sorted(a)[-1], sum([[1], [2]], [])]
""")
add("hashes", LARGE, """
import hashlib, zlib, base64, binascii
MOD = (1 << 61) - 1
def solve(rows):
    h = 0
    for x in rows[1]: h = (h * 911382323 + x) % MOD
    data = " ".join(map(str, rows[1])).encode()
    return [h, hashlib.md5(data).hexdigest(), hashlib.sha256(data).hexdigest()[:16], zlib.crc32(data), base64.b64encode(data)[:8], binascii.hexlify(b"ab"), hash(rows[1][0]), hash(2**61), hash(1.5), hash((1, 2))]
""")
add("random numbers", LARGE, """
import random
def solve(rows):
    random.seed(42)
    a = list(range(10)); random.shuffle(a)
    r = random.Random(7)
    return [a, random.randint(1, 10**12), random.randrange(10**15), random.choice(range(10**10)), random.sample(range(10**11), 3), random.choices("abc", k=3), f"{random.random():.10f}", f"{random.gauss(0, 1):.10f}", r.getrandbits(70), f"{r.uniform(1, 2):.8f}"]
""")
add("game of life", [[4, 4], [0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]], """
from collections import Counter
def solve(rows):
    alive = {(y, x) for y, row in enumerate(rows[1:]) for x, c in enumerate(row) if c}
    for _ in range(3):
        near = Counter((y + dy, x + dx) for y, x in alive for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx)
        alive = {c for c, n in near.items() if n == 3 or n == 2 and c in alive}
    return ["".join(".#"[(y, x) in alive] for x in range(4)) for y in range(4)]
""")
add("a star", [[4, 4], [1, 3, 1, 9], [2, 8, 1, 1], [1, 1, 9, 1], [5, 1, 1, 1]], """
import heapq, itertools
def solve(rows):
    (h, w), cost = rows[0], rows[1:]
    tie, best, heap = itertools.count(), {(0, 0): cost[0][0]}, []
    heapq.heappush(heap, (h + w - 2, next(tie), (0, 0)))
    while heap:
        _, _, (y, x) = heapq.heappop(heap)
        if (y, x) == (h - 1, w - 1): return [best[y, x]]
        for ny, nx in ((y + 1, x), (y, x + 1), (y - 1, x), (y, x - 1)):
            if 0 <= ny < h and 0 <= nx < w and best[y, x] + cost[ny][nx] < best.get((ny, nx), 10**18):
                best[ny, nx] = best[y, x] + cost[ny][nx]
                heapq.heappush(heap, (best[ny, nx] + h - 1 - ny + w - 1 - nx, next(tie), (ny, nx)))
""")
add("roman numerals", [[4], [1994, 3999, 4, 58]], """
def solve(rows):
    table = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    def roman(n):
        out = ""
        for v, s in table:
            k, n = divmod(n, v); out += s * k
        return out
    return [roman(x) for x in rows[1]]
""")
add("spiral and rotation", [[3, 3], [1, 2, 3], [4, 5, 6], [7, 8, 9]], """
def solve(rows):
    m, out = [row[:] for row in rows[1:]], []
    while m:
        out += m.pop(0); m = [list(r) for r in zip(*m)][::-1]
    turned = list(map(list, zip(*rows[1:][::-1])))
    return [out, turned, [row[i] for i, row in enumerate(turned)]]
""")
add("kmp and z", [[2], [1, 2, 1, 2, 1, 3, 1, 2, 1], [1, 2, 1]], """
def solve(rows):
    s, p = rows[1:]
    f, k = [0] * len(p), 0
    for i in range(1, len(p)):
        while k and p[i] != p[k]: k = f[k - 1]
        k += p[i] == p[k]; f[i] = k
    found, k = [], 0
    for i, c in enumerate(s):
        while k and (k == len(p) or c != p[k]): k = f[k - 1]
        k += c == p[k]
        if k == len(p): found.append(i - k + 1)
    return [f, found]
""")
add("fast fourier transform", [[2], [1, 2, 3, 4], [5, 6, 7, 8]], """
import cmath
def fft(a, sign=1):
    n = len(a)
    if n == 1: return a
    even, odd = fft(a[::2], sign), fft(a[1::2], sign)
    t = [cmath.exp(sign * 2j * cmath.pi * k / n) * odd[k] for k in range(n // 2)]
    return [even[k] + t[k] for k in range(n // 2)] + [even[k] - t[k] for k in range(n // 2)]
def solve(rows):
    a, b = ([complex(x) for x in row] + [0j] * 4 for row in rows[1:])
    c = fft([x * y for x, y in zip(fft(a), fft(b))], -1)
    return [[round(x.real / 8) for x in c][:7]]
""")
add("newton and simpson", [[1], [2]], """
import math
def solve(rows):
    x = rows[1][0]
    r = x
    for _ in range(30): r = (r + x / r) / 2
    n, h = 1000, math.pi / 1000
    area = h / 3 * sum((1 if i in (0, n) else 4 if i % 2 else 2) * math.sin(i * h) for i in range(n + 1))
    return [f"{r:.12f}", f"{area:.9f}", math.isclose(r * r, x), f"{math.e ** 0.5:.10f}", f"{math.log2(10):.8f}", f"{math.atan2(1, 2):.9f}", 1e22, 0.1 + 0.2, 1 / 3, -0.0, 5e-324, float("1e400")]
""")
add("bootstrap trampoline", [[1], [20000]], """
from types import GeneratorType
def bootstrap(f, stack=[]):
    def wrapped(*args, **kwargs):
        if stack: return f(*args, **kwargs)
        to = f(*args, **kwargs)
        while True:
            if type(to) is GeneratorType:
                stack.append(to); to = next(to)
            else:
                stack.pop()
                if not stack: break
                to = stack[-1].send(to)
        return to
    return wrapped
def solve(rows):
    @bootstrap
    def depth(n):
        if n == 0: yield 0
        yield (yield depth(n - 1)) + 1
    return [depth(rows[1][0])]
""")
