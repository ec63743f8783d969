"""Programs that use what a sandbox may lack: numbers of 64 bits, threads, an event loop, modules of the system, a stack.
Each is a program and what it reads."""

PROGRAMS = []


def add(name, code, stdin=""):
    PROGRAMS.append((name, code.strip("\n") + "\n", stdin))


add("the length of a range", "print(len(range(0, 10**10, 3)), len(range(10**18, 0, -7)), len(range(5, 5)))")
add("a range is indexed", "r = range(10**12)\nprint(r[10**11], 5 in r, r.index(10**10), r[-1], r[10:10**11:10**9][3], len(r[5:]), bool(r))")
add("bisect over a range", "from bisect import *\nn = int(input())\nprint(bisect_left(range(10**12), True, key=lambda x: x * x >= n), bisect_right(range(10**12), 10**11), bisect(range(10**12), 3), bisect_left(range(10**6), 77))", "10000000000000000\n")
add("bisect over an object", """
from bisect import bisect_left, bisect_right
class Squares:
    def __len__(self): return 10**12
    def __getitem__(self, i): return i * i
print(bisect_left(Squares(), 10**20), bisect_right(Squares(), 10**6), bisect_left(Squares(), 5, 0, 10**18), len(Squares()))
""")
add("bisect over a list as ever", "import bisect\na = [1, 3, 5]\nbisect.insort(a, 4); bisect.insort_left(a, 3)\nprint(a, bisect.bisect(a, 4), bisect.bisect_left(a, 4, 1, 3))\ntry: bisect.bisect_left(a, 1, -1)\nexcept ValueError as e: print(e)")
add("islice and repeat with large numbers", "import sys\nfrom itertools import *\nprint(list(islice('abc', sys.maxsize)), list(islice(range(9), 1, 10**12, 3)), list(islice(repeat(7, 10**12), 3)), next(islice(count(), 0, 10**10)))")
add("a deque of any size", "from collections import deque\nimport sys\nd = deque([1, 2], maxlen=10**10)\nd.append(3); d.rotate(10**12 + 1)\nprint(d, len(d), d.maxlen, isinstance(d, deque), deque([1], maxlen=sys.maxsize)[0], deque([1, 2], 1))")
add("rotation by a large number", "from collections import deque\nd = deque(range(5))\nd.rotate(811589153 * 10); print(list(d))\nd.rotate(-10**17); print(list(d))")
add("methods with a large number", "import re, sys\nprint('aXbXc'.replace('X', '-', 10**10), 'a b c'.split(' ', sys.maxsize), 'a b c'.rsplit(None, 10**12))\nl = [1]; l.insert(10**10, 2); print(l, 'abc'.find('c', 0, 10**10), l.index(2, 0, sys.maxsize))\nprint(re.sub('a', 'b', 'aaa', count=10**10), 'abc'[:10**12], [1, 2][-10**12:])\ntry: l.pop(10**10)\nexcept IndexError: print('no such element')")
add("an overflow that is caught", "try:\n    n = len(range(10**10))\nexcept OverflowError:\n    n = -1\nprint(n)\ntry:\n    print(len(range(10**30)))\nexcept OverflowError:\n    print('too large')")
add("sys.maxsize", "import sys\nprint(sys.maxsize, sys.maxsize > 2**32, sys.maxsize == 2**63 - 1, -sys.maxsize - 1, sys.hash_info.width, sys.hash_info.modulus)\nbest = -sys.maxsize\nfor x in map(int, input().split()): best = max(best, x)\nprint(best)", "-5000000000 -7000000000\n")
add("a cache of any size", "from functools import lru_cache\nimport sys\n@lru_cache(maxsize=10**10)\ndef f(x): return x * 2\n@lru_cache(sys.maxsize)\ndef g(x): return x\nprint(f(1), f(1), g(3), f.cache_info(), f.cache_parameters(), g.cache_info().maxsize)")
add("caches count and forget", """
from functools import lru_cache, cache, cached_property
@lru_cache(maxsize=2)
def f(n):
    print("call", n)
    return n * n
for x in (1, 2, 1, 3, 2, 1): f(x)
print(f.cache_info(), f.__name__, f.__wrapped__(5))
f.cache_clear(); print(f.cache_info())
@cache
def g(a, b=2, *c, k=1): return a + b + sum(c) + k
print(g(1), g(1, 3), g(1, b=4), g(1, 2, 3, k=9), g.cache_info().misses)
@lru_cache(typed=True)
def h(x): return str(x)
print(h(1), h(1.0), h(True), h("1"))
@lru_cache
def i(x, y=0): return f"{x}{y}"
print(i(1), i(4.0), i(x=3), i(2, y=5))
class A:
    @lru_cache(None)
    def fib(self, n): return n if n < 2 else self.fib(n - 1) + self.fib(n - 2)
    @cached_property
    def p(self): print("once"); return 3
a = A(); print(a.fib(80), a.p, a.p)
for bad in (lambda: f([1]), lambda: f(), lambda: f(1, 2)):
    try: bad()
    except TypeError: print("TypeError")
@lru_cache(0)
def z(): print("z")
z(); z()
""")
add("a cached recursion of ten thousand calls", "import sys\nfrom functools import lru_cache\nsys.setrecursionlimit(10**6)\n@lru_cache(maxsize=None)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nfor i in range(0, 10001, 400): f(i)\nprint(f(10000))")
add("array of C longs", "from array import array\na = array('l', [2**40, -5]); a.append(2**62)\nprint(a, a.itemsize, a.typecode, a[1], sum(a), len(a), isinstance(a, array), array('L', [2**63]) * 2)\nprint(array('i', [1, 2]), array('q', [1]), array('d', [1.5]).itemsize, a == array('q', a), a[0:2].tolist(), array('l').itemsize, array('l', range(3)).tobytes().hex())\na.extend(array('l', [1])); a[0] = 7; print(a.index(7), max(a))\ntry: array('l', [2**63])\nexcept OverflowError: print('too large')")
add("struct with C longs", "import struct\nprint(struct.calcsize('l'), struct.calcsize('P'), struct.calcsize('il'), struct.pack('l', 2**40), struct.unpack('lL', struct.pack('lL', -2**40, 2**63)), struct.calcsize('<l'), struct.Struct('l').size, struct.calcsize('n'), struct.calcsize('bhilq'), struct.Struct('<i').pack(5), struct.unpack_from('>H', b'abcd', 1))")
add("hashes of numbers", "from fractions import Fraction\nfrom decimal import Decimal\nprint(hash(2**61 - 1), hash(-1), hash(2**61), hash(-2**70), hash(10**30), hash(True))\nprint(hash(1.5), hash(-2.25), hash(1e300), hash(float('inf')), hash(3 + 4j), hash(0.1))\nprint(hash((1, 2, 3)), hash(()), hash((2**40, -1, (5,))), hash(frozenset([1, 2, 3])), hash(frozenset()), hash((1.5, True)))\nprint(hash(Fraction(1, 3)), hash(Decimal('1.5')), hash(Decimal('0.1')), hash(Fraction(5)), len({hash(i * 2**33) for i in range(1000)}))")
add("hashes of own objects", "class A:\n    def __init__(self, x): self.x = x\n    def __hash__(self): return hash((self.x, 'a'))\n    def __eq__(self, o): return self.x == o.x\nclass B:\n    def __hash__(self): return 2**40 + 5\nprint(len({A(1), A(1), A(2)}), hash(A(3)) == hash(A(3)), hash(B()), {A(1): 2}[A(1)])")
add("random numbers beyond 32 bits", "import random\nrandom.seed(5)\nprint(random.choices(range(10**12), k=2), random.sample(range(10**12), 2), random.choice(range(10**11)), random.randrange(10**15), random.randint(-10**12, 10**12), random.randrange(0, 10**12, 7))\nrandom.seed(1.5); print(random.random())\nrandom.seed('abc'); print(random.random(), random.getrandbits(70))\nl = list(range(10)); random.shuffle(l); print(l, random.choice('abc'), random.sample([1, 2, 3], 2))")
add("a thread with a large stack", "import sys, threading\nsys.setrecursionlimit(10**7)\nthreading.stack_size(2**27)\ndef depth(n): return 0 if n == 0 else 1 + depth(n - 1)\ndef main():\n    print(depth(int(input())))\nt = threading.Thread(target=main)\nt.start()\nt.join()", "30000\n")
add("a thread that is not joined", "import threading\ndef main():\n    print(int(input()) * 2)\nthreading.Thread(target=main).start()", "4\n")
add("threads with a lock", "import threading\nlock, n = threading.RLock(), 0\ndef work():\n    global n\n    for _ in range(1000):\n        with lock:\n            with lock: n += 1\nthreads = [threading.Thread(target=work) for _ in range(4)]\nfor t in threads: t.start()\nfor t in threads: t.join()\nprint(n, threading.active_count(), threading.current_thread().name, threads[0].is_alive(), lock.acquire(False))")
add("a subclass of Thread", "import threading\nclass Square(threading.Thread):\n    def __init__(self, n): super().__init__(name=f's{n}'); self.n = n\n    def run(self): self.result = self.n ** 2\nall = [Square(i) for i in range(5)]\nfor t in all: t.start()\nfor t in all: t.join()\nprint([t.result for t in all], all[2].name)")
add("a consumer that starts first", "import threading, queue\nq, out = queue.Queue(), []\ndef consume():\n    while True:\n        x = q.get()\n        if x is None: break\n        out.append(x * x); q.task_done()\nt = threading.Thread(target=consume); t.start()\nfor i in range(5): q.put(i)\nq.put(None)\nt.join()\nprint(out, q.empty())")
add("daemons that work on a queue", "import threading, queue\nq, out = queue.Queue(), []\ndef work():\n    while True:\n        x = q.get(); out.append(x * x); q.task_done()\nfor _ in range(3): threading.Thread(target=work, daemon=True).start()\nfor i in range(5): q.put(i)\nq.join()\nprint(sorted(out))")
add("a queue with few places", "import threading\nfrom queue import Queue\nq, out = Queue(maxsize=2), []\ndef produce():\n    for i in range(6): q.put(i)\n    q.put(None)\ndef consume():\n    while (x := q.get()) is not None: out.append(x)\nthreads = [threading.Thread(target=f) for f in (produce, consume)]\nfor t in threads: t.start()\nfor t in threads: t.join()\nprint(out)")
add("an event", "import threading\nready = threading.Event()\ndef wait():\n    ready.wait(); print('go')\nt = threading.Thread(target=wait); t.start()\nprint('set'); ready.set(); t.join(); print('done', ready.is_set())")
add("a barrier", "import threading\nb, out = threading.Barrier(3), []\ndef work(i):\n    b.wait(); out.append(i)\nts = [threading.Thread(target=work, args=(i,)) for i in range(3)]\n[t.start() for t in ts]; [t.join() for t in ts]\nprint(sorted(out))")
add("threads in order", """
import threading
class Foo:
    def __init__(self):
        self.a, self.b = threading.Semaphore(0), threading.Semaphore(0)
    def first(self, say): say(); self.a.release()
    def second(self, say): self.a.acquire(); say(); self.b.release()
    def third(self, say): self.b.acquire(); say()
foo = Foo()
threads = [threading.Thread(target=m, args=(lambda w=w: print(w),)) for m, w in ((foo.third, 'third'), (foo.first, 'first'), (foo.second, 'second'))]
for t in threads: t.start()
for t in threads: t.join()
""")
add("a condition", "import threading\nc, items = threading.Condition(), []\ndef consume():\n    with c:\n        while not items: c.wait()\n        print('got', items.pop())\nt = threading.Thread(target=consume); t.start()\nwith c: items.append(3); c.notify()\nt.join()")
add("a timer and a local", "import threading\nl = threading.local(); l.x = 1\ndef tick(): print('tick', hasattr(l, 'x'))\nt = threading.Timer(0.01, tick); t.start(); t.join()\nu = threading.Timer(60, tick); u.daemon = True\nprint('end', l.x)")
add("a thread that fails", "import threading, sys\ndef fail(): raise ValueError('x')\ndef leave(): print('a'); sys.exit()\nfor f in (fail, leave):\n    t = threading.Thread(target=f); t.start(); t.join()\nprint('main goes on')")
add("a pool of threads", "from concurrent.futures import ThreadPoolExecutor, as_completed, wait\nwith ThreadPoolExecutor(max_workers=4) as pool:\n    print(list(pool.map(lambda x: x * x, range(5))))\n    futures = {pool.submit(pow, 2, i): i for i in range(4)}\n    print(sorted(f.result() for f in as_completed(futures)), len(wait(futures).done))\n    f = pool.submit(int, 'x')\n    try: f.result()\n    except ValueError: print('ValueError')\n    print(type(f.exception()).__name__, f.done())")
add("a pool of processes", "from multiprocessing import Pool\nfrom concurrent.futures import ProcessPoolExecutor\ndef f(x): return x * x\nif __name__ == '__main__':\n    with Pool(2) as p: print(p.map(f, range(5)), p.starmap(pow, [(2, 3), (3, 2)]), p.apply(f, (7,)), list(p.imap(f, [1, 2])))\n    with ProcessPoolExecutor() as p: print(list(p.map(f, [5, 6])))")
add("processes with a queue", "import multiprocessing as mp\ndef f(q, x): q.put(x * x)\nif __name__ == '__main__':\n    q = mp.Queue()\n    ps = [mp.Process(target=f, args=(q, i)) for i in range(3)]\n    for p in ps: p.start()\n    print(sorted(q.get() for _ in ps))\n    for p in ps: p.join()\n    print(ps[0].exitcode)")
add("asyncio", """
import asyncio
async def twice(x):
    await asyncio.sleep(0.001 * x)
    return x * 2
async def numbers():
    for i in range(3):
        yield i; await asyncio.sleep(0)
async def main():
    print(await asyncio.gather(*(twice(i) for i in (3, 1, 2))))
    q = asyncio.Queue(maxsize=1)
    async def produce():
        for i in range(3): await q.put(i)
        await q.put(None)
    async def consume():
        while (x := await q.get()) is not None: print("got", x)
    await asyncio.gather(produce(), consume())
    try: await asyncio.wait_for(asyncio.sleep(10), 0.001)
    except asyncio.TimeoutError: print("late")
    print(await asyncio.to_thread(lambda: 5), [i async for i in numbers()])
    lock = asyncio.Lock()
    async with asyncio.TaskGroup() as group, lock:
        task = group.create_task(twice(1))
    print(task.result())
    done, _ = await asyncio.wait([asyncio.create_task(twice(4))]); print(done.pop().result())
    print(await asyncio.get_running_loop().run_in_executor(None, pow, 2, 5))
asyncio.run(main())
""")
add("an event loop as of old", "import asyncio\nasync def main(n): return n + 1\nloop = asyncio.new_event_loop()\nasyncio.set_event_loop(loop)\nprint(loop.run_until_complete(main(int(input()))))\nloop.close()", "6\n")
add("asyncio reads stdin", "import asyncio, sys\nasync def main():\n    n = int(sys.stdin.readline())\n    results = await asyncio.gather(*[asyncio.to_thread(pow, i, 2) for i in range(n)])\n    print(*results)\nasyncio.run(main())", "4\n")
add("resource", "import resource, sys\nresource.setrlimit(resource.RLIMIT_STACK, (resource.getrlimit(resource.RLIMIT_STACK)[1],) * 2)\nsys.setrecursionlimit(10**6)\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_utime >= 0)")
add("signals", "import signal\nfrom signal import signal as on, SIGPIPE, SIG_DFL\non(SIGPIPE, SIG_DFL)\ndef late(*_): raise TimeoutError\nsignal.signal(signal.SIGALRM, late); signal.alarm(100); signal.alarm(0)\nprint('fine')")
add("ctypes", "import ctypes\nprint(ctypes.c_int32(2**31).value, ctypes.c_uint32(-1).value, ctypes.c_int64(2**63).value, ctypes.c_long(2**40).value, ctypes.c_int(-2**31 - 1).value, ctypes.c_ubyte(300).value)\na = (3 * ctypes.py_object)(); a[0] = 'x'; print(a[0], len(a))\nb = (ctypes.c_int * 4)(1, 2); b[3] = 2**32 + 5; print(list(b), ctypes.sizeof(ctypes.c_long))")
add("modules that are imported in vain", "import os, sys, subprocess, socket, pdb, cProfile, tracemalloc, faulthandler, contextvars, optparse, doctest, dis, glob, ipaddress, colorsys, configparser, sched, stat, gettext, cmd, resource, ctypes, multiprocessing, signal\nfrom xml.etree import ElementTree\nprint(sum(map(int, sys.stdin.read().split())))", "1 2 3\n")
add("/dev/stdin", "print(sum(map(int, open('/dev/stdin').read().split())))", "1 2 3\n")
add("input.txt if it is there", "import os, sys\nif os.path.exists('input.txt'):\n    sys.stdin = open('input.txt'); sys.stdout = open('output.txt', 'w')\ntry: f = open('data.in')\nexcept FileNotFoundError: f = sys.stdin\nprint(f.read().split()[::-1])", "1 2 3\n")
add("reads by descriptor", "import os, io\ninput = io.BytesIO(os.read(0, 10**6)).readline\nn = int(input())\nos.write(1, str(sum(map(int, input().split())) + n).encode())", "2\n5 6\n")
add("reads and prints by a class of its own", """
import os, sys
from io import BytesIO, IOBase
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno(); self.buffer = BytesIO()
        self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def readline(self):
        while self.newlines == 0:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, 8192))
            self.newlines = b.count(b"\\n") + (not b)
            ptr = self.buffer.tell(); self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines -= 1
        return self.buffer.readline()
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue()); self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file); self.flush = self.buffer.flush; self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii"))
        self.readline = lambda: self.buffer.readline().decode("ascii")
sys.stdin, sys.stdout = IOWrapper(sys.stdin), IOWrapper(sys.stdout)
input = lambda: sys.stdin.readline().rstrip("\\r\\n")
for _ in range(int(input())):
    a, b = map(int, input().split())
    sys.stdout.write(f"{a * b}\\n")
sys.stdout.flush()
""", "2\n3 4\n10000000000 7\n")
add("a recursion without end", "import sys\ndef f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError: print('caught')\nsys.setrecursionlimit(500)\ntry: f(0)\nexcept RecursionError as e: print(e)")
add("a recursion without end through C", "class A:\n    def __getattr__(self, name): return getattr(self, name + 'x')\n    def __eq__(self, other): return other == self\n    def __repr__(self): return repr(self)\nfor f in (lambda: A().y, lambda: A() == A(), lambda: repr(A())):\n    try: f()\n    except RecursionError: print('caught')")
add("an exception from deep down", "import sys\nsys.setrecursionlimit(10**6)\nclass Found(Exception): pass\ndef search(n):\n    if n == 0: raise Found('here')\n    try: search(n - 1)\n    finally: pass\ntry: search(9000)\nexcept Found as e: print(e)")
add("a long chain of objects is freed", "class Node:\n    def __init__(self, value, next=None): self.value, self.next = value, next\ndef build(n):\n    head = None\n    for i in range(n): head = Node(i, head)\n    return sum(1 for _ in walk(head))\ndef walk(node):\n    while node: yield node; node = node.next\nprint(build(30000))\ndef nest(n):\n    a = []\n    for _ in range(n): a = [a]\n    return len(a)\nprint(nest(30000))\nt = ()\nfor i in range(30000): t = (i, t)\ndel t\nprint('freed')")
add("clocks", "import time\nt = time.process_time(); u = time.perf_counter(); time.sleep(0.001)\nprint(0 <= time.process_time() - t < 5, time.perf_counter() > u, time.time_ns() > 10**15, time.thread_time() >= 0, time.monotonic_ns() > 0)")
add("integers and memory of a system", "import sys, os, platform, gc\nprint(os.cpu_count() > 0, os.getpid() > 0, sys.getsizeof([]) > 0, sys.int_info.bits_per_digit, sys.float_info.max, sys.byteorder)\ngc.disable(); gc.collect(); print(sys.getrefcount(object()) > 0, sys.version_info >= (3, 8))")
add("a cache keys what is passed", "from functools import cache\n@cache\ndef f(n, memo=[]): return n if n < 2 else f(n - 1) + f(n - 2)\nprint(f(90), f.cache_info())\n@cache\ndef g(x, y=2): return x + y\nprint(g(1), g(1, 2), g(x=1), g(y=2, x=1), g(x=1, y=2), g.cache_info())\nclass Text(str): pass\n@cache\ndef h(x): return type(x).__name__\nprint(h('a'), h(Text('a')), h(1), h(1.0), h(True), h.cache_info())")
add("a cache whose parameters have any name", "from functools import lru_cache\n@lru_cache(50)\ndef f(len, key=1, self=2, cache=3, args=4, kwargs=5): return len + key\nprint(f(1), f(1, key=2), f(len=1), f(1), f.cache_info())")
add("a cache and arguments without a hash", "from functools import cache, lru_cache\n@cache\ndef f(x, y=0): return x\n@lru_cache(0)\ndef g(x): return len(x)\nfor args in ([[1]], [1, {}]):\n    try: f(*args)\n    except TypeError as e: print(e)\nprint(g([1]), g([1]), g.cache_info(), f.cache_info())")
add("a cache forgets no error and the oldest call", "from functools import lru_cache\n@lru_cache(2)\ndef f(x):\n    print('call', x)\n    if x == 3: raise ValueError(x)\n    return x\nfor x in (1, 2, 3, 3, 1, 4, 2, 1):\n    try: f(x)\n    except ValueError as e: print(repr(e))\nprint(f.cache_info())\n@lru_cache(maxsize=3, typed=True)\ndef g(x, *, k=0): return type(x).__name__\nprint(g(1), g(1.0), g(True), g(1, k=0), g(1, k=0.0), g.cache_info())")
add("a cached recursion below its limit", "import sys\nfrom functools import cache\nsys.setrecursionlimit(4000)\n@cache\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(2900), sys.getrecursionlimit())")
add("statuses of processes", "import sys\nfrom multiprocessing import Process\ndef a(): sys.exit(3)\ndef b(): raise ValueError('x')\ndef c(): pass\ndef d(): sys.exit('no')\nif __name__ == '__main__':\n    ps = [Process(target=f) for f in (a, b, c, d)]\n    print([p.exitcode for p in ps])\n    for p in ps: p.start()\n    for p in ps: p.join()\n    print([p.exitcode for p in ps], ps[0].is_alive())")
add("a consumer that polls", "import threading, queue, time\nq, out, stop = queue.Queue(), [], False\ndef consume():\n    while not stop:\n        try: out.append(q.get_nowait())\n        except queue.Empty: pass\nt = threading.Thread(target=consume); t.start()\nfor i in range(5): q.put(i)\nwhile len(out) < 5: time.sleep(0.01)\nstop = True; t.join()\nprint(out)")
add("a producer beside a consumer that polls", "import threading, queue\nq, out, stop = queue.Queue(), [], threading.Event()\ndef consume():\n    while not stop.is_set() or not q.empty():\n        try: out.append(q.get_nowait())\n        except queue.Empty: pass\ndef produce():\n    for i in range(5): q.put(i)\nc, p = threading.Thread(target=consume), threading.Thread(target=produce)\nc.start(); p.start(); p.join(); stop.set(); c.join()\nprint(out)")
