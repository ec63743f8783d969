// Algorithms of contests: each is a function `solve`, from rows of numbers to lines. `generate.mjs` puts each into three
// of the forms in which programs read and print.

export const ALGORITHMS = {
  dijkstra: [`function solve(rows) {
  const [[n], ...edges] = rows;
  const graph = Array.from({ length: n + 1 }, () => []);
  for (const [a, b, w] of edges) {
    graph[a].push([b, w]);
    graph[b].push([a, w]);
  }
  const dist = new Array(n + 1).fill(Infinity);
  dist[1] = 0;
  const heap = [[0, 1]];
  while (heap.length > 0) {
    heap.sort((x, y) => x[0] - y[0]);
    const [d, u] = heap.shift();
    if (d > dist[u]) continue;
    for (const [v, w] of graph[u]) if (d + w < dist[v]) {
      dist[v] = d + w;
      heap.push([dist[v], v]);
    }
  }
  return [dist.slice(1).map((d) => (d === Infinity ? -1 : d)).join(" ")];
}`, [[6, 8], [1, 2, 7], [1, 3, 9], [1, 6, 14], [2, 3, 10], [2, 4, 15], [3, 4, 11], [3, 6, 2]]],
  "a binary heap": [`class Heap {
  #items = [];
  constructor(compare) { this.compare = compare; }
  get size() { return this.#items.length; }
  push(item) {
    const items = this.#items;
    items.push(item);
    let at = items.length - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (this.compare(items[up], items[at]) <= 0) break;
      [items[up], items[at]] = [items[at], items[up]];
      at = up;
    }
  }
  pop() {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (items.length > 0) {
      items[0] = last;
      let at = 0;
      for (;;) {
        let small = at;
        for (const down of [2 * at + 1, 2 * at + 2]) {
          if (down < items.length && this.compare(items[down], items[small]) < 0) small = down;
        }
        if (small === at) break;
        [items[small], items[at]] = [items[at], items[small]];
        at = small;
      }
    }
    return top;
  }
}
function solve(rows) {
  const heap = new Heap((a, b) => b - a);
  for (const row of rows) for (const each of row) heap.push(each);
  const lines = [];
  while (heap.size) lines.push(heap.pop());
  return lines;
}`, [[5, 3, 9], [1, 1, 8], [-4, 22]]],
  sieve: [`function solve([[n]]) {
  const composite = new Uint8Array(n + 1);
  const primes = [];
  for (let i = 2; i <= n; i++) {
    if (composite[i]) continue;
    primes.push(i);
    for (let j = i * i; j <= n; j += i) composite[j] = 1;
  }
  return [primes.length, primes.slice(-5).join(" ")];
}`, [[20000]]],
  "powers modulo a prime": [`function solve(rows) {
  const M = 1000000007n;
  const power = (b, e) => {
    let r = 1n;
    b = BigInt(b) % M;
    for (e = BigInt(e); e > 0n; e >>= 1n) {
      if (e & 1n) r = r * b % M;
      b = b * b % M;
    }
    return r;
  };
  return rows.map(([b, e]) => power(b, e).toString());
}`, [[2, 10], [3, 1000000], [123456789, 987654321]]],
  "longest common subsequence": [`function solve(rows) {
  const [a, b] = rows;
  const dp = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = 1; i <= a.length; i++)
    for (let j = 1; j <= b.length; j++)
      dp[i][j] = a[i - 1] === b[j - 1] ? dp[i - 1][j - 1] + 1 : Math.max(dp[i - 1][j], dp[i][j - 1]);
  return [dp[a.length][b.length]];
}`, [[1, 3, 4, 1, 2, 3, 9, 7], [3, 4, 1, 2, 1, 3, 7]]],
  "union of sets": [`var solve = function (rows) {
  var parent = {};
  function find(x) {
    if (parent[x] === undefined) parent[x] = x;
    return parent[x] === x ? x : (parent[x] = find(parent[x]));
  }
  var out = [];
  for (var i = 0; i < rows.length; i++) {
    var a = find(rows[i][0]), b = find(rows[i][1]);
    out.push(a === b ? "YES" : "NO");
    parent[a] = b;
  }
  return out;
};`, [[1, 2], [3, 4], [1, 3], [2, 4], [5, 5]]],
  "breadth first": [`const solve = (grid) => {
  const [h, w] = [grid.length, grid[0].length];
  const dist = grid.map((row) => row.map(() => -1));
  const queue = [[0, 0]];
  dist[0][0] = 0;
  for (let head = 0; head < queue.length; head++) {
    const [y, x] = queue[head];
    for (const [dy, dx] of [[0, 1], [1, 0], [0, -1], [-1, 0]]) {
      const [v, u] = [y + dy, x + dx];
      if (v < 0 || u < 0 || v >= h || u >= w || grid[v][u] || dist[v][u] >= 0) continue;
      dist[v][u] = dist[y][x] + 1;
      queue.push([v, u]);
    }
  }
  return dist.map((row) => row.join(" "));
};`, [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]]],
  knapsack: [`function solve([[capacity], ...items]) {
  let best = new Array(capacity + 1).fill(0);
  for (const [weight, value] of items)
    for (let c = capacity; c >= weight; c--) best[c] = Math.max(best[c], best[c - weight] + value);
  return [best[capacity]];
}`, [[50], [10, 60], [20, 100], [30, 120], [5, 31]]],
  permutations: [`function* permutations(items) {
  if (items.length <= 1) {
    yield items;
    return;
  }
  for (const [i, item] of items.entries())
    for (const rest of permutations([...items.slice(0, i), ...items.slice(i + 1)])) yield [item, ...rest];
}
const solve = ([row]) => [...permutations(row)].map((each) => each.join(" "));`, [[1, 2, 3, 4]]],
  "prefix sums": [`function solve([numbers, ...queries]) {
  const sums = [0];
  numbers.forEach((each, i) => sums.push(sums[i] + each));
  return queries.map(([from, to]) => sums[to] - sums[from - 1]);
}`, [[5, -2, 7, 1, 9], [1, 5], [2, 3], [4, 4]]],
  "counting words": [`const solve = (rows) => {
  const counts = new Map();
  for (const each of rows.flat()) counts.set(each, (counts.get(each) ?? 0) + 1);
  return [...counts].sort(([a, m], [b, n]) => n - m || a - b).map(([key, count]) => \`\${key}: \${count}\`);
};`, [[1, 2, 2], [3, 3, 3, 1], [7]]],
  "a matrix to a power": [`const multiply = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((sum, each, k) => sum + each * b[k][j], 0n)));
function solve([[n]]) {
  let result = [[1n, 0n], [0n, 1n]];
  let base = [[1n, 1n], [1n, 0n]];
  for (let e = n; e > 0; e = Math.floor(e / 2)) {
    if (e % 2 === 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return [String(result[0][1])];
}`, [[300]]],
  "binary search": [`function solve([sorted, ...questions]) {
  const lower = (x) => {
    let [lo, hi] = [0, sorted.length];
    while (lo < hi) {
      const mid = (lo + hi) >>> 1;
      if (sorted[mid] < x) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  };
  return questions.map(([x]) => lower(x) + (sorted[lower(x)] === x ? " found" : ""));
}`, [[1, 3, 3, 8, 12], [3], [9], [100], [-5]]],
  queens: [`function solve([[n]]) {
  let count = 0;
  const full = (1 << n) - 1;
  (function place(rows, left, right) {
    if (rows === full) return void count++;
    for (let free = full & ~(rows | left | right); free; free &= free - 1) {
      const bit = free & -free;
      place(rows | bit, (left | bit) << 1, (right | bit) >> 1);
    }
  })(0, 0, 0);
  return [count];
}`, [[7]]],
  "a trie": [`class Trie {
  constructor() { this.root = Object.create(null); }
  add(word) {
    let node = this.root;
    for (const letter of word) node = node[letter] ??= Object.create(null);
    node.$ = true;
  }
  count(prefix) {
    let node = this.root;
    for (const letter of prefix) if (!(node = node[letter])) return 0;
    const below = (at) => Object.entries(at).reduce((sum, [key, next]) => sum + (key === "$" ? 1 : below(next)), 0);
    return below(node);
  }
}
function solve([words, prefixes]) {
  const trie = new Trie();
  words.forEach((each) => trie.add(String(each)));
  return prefixes.map((each) => trie.count(String(each)));
}`, [[12, 123, 124, 99, 9], [1, 12, 9, 5]]],
};

/** The forms. `CODE` stands for the algorithm. */
export const FORMS = {
  "readFileSync(0)": `const fs = require("fs");
CODE
const rows = fs.readFileSync(0, "utf8").trim().split("\\n").map((line) => line.split(" ").map(Number));
console.log(solve(rows).join("\\n"));
`,
  "/dev/stdin": `CODE
const lines = require("fs").readFileSync("/dev/stdin").toString().split(/\\r?\\n/).filter(Boolean);
for (const line of solve(lines.map((each) => each.split(/\\s+/).map((word) => parseInt(word, 10))))) {
  console.log("%s", line);
}
`,
  "events of stdin": `"use strict";
CODE
process.stdin.resume();
process.stdin.setEncoding("utf8");
let input = "";
process.stdin.on("data", (chunk) => {
  input += chunk;
});
process.stdin.on("end", () => {
  const rows = input.split("\\n").filter((line) => line !== "").map((line) => line.split(" ").map(Number));
  solve(rows).forEach((line) => process.stdout.write(line + "\\n"));
});
`,
  "readline, line by line": `const readline = require("readline");
CODE
const rl = readline.createInterface({ input: process.stdin, output: process.stdout, terminal: false });
const rows = [];
rl.on("line", (line) => rows.push(line.split(" ").map((x) => +x)));
rl.on("close", () => {
  for (const line of solve(rows)) console.log(line);
  process.exit(0);
});
`,
  "for await of lines": `const { createInterface } = require("node:readline");
CODE
(async function main() {
  const rows = [];
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    if (line.trim()) rows.push(line.trim().split(" ").map(Number));
  }
  const text = solve(rows).join("\\n");
  console.log(text);
})();
`,
  "chunks, concatenated": `const { Buffer } = require("buffer");
CODE
const chunks = [];
process.stdin.on("data", (chunk) => chunks.push(chunk)).on("end", () => {
  const tokens = Buffer.concat(chunks).toString("utf8").split("\\n");
  const rows = tokens.map((each) => each.trim()).filter((each) => each.length).map((each) => each.split(" ").map(Number));
  const out = [];
  for (const line of solve(rows)) out.push(line);
  require("fs").writeSync(1, out.join("\\n") + "\\n");
});
`,
  "readable and read()": `CODE
let text = "";
process.stdin.setEncoding("utf8").on("readable", () => {
  let chunk;
  while ((chunk = process.stdin.read()) !== null) text += chunk;
});
process.stdin.on("end", () => {
  const rows = text.trimEnd().split("\\n").map((line) => line.split(" ").map(Number));
  Promise.resolve(solve(rows)).then((lines) => lines.forEach((line) => console.log(String(line))));
});
`,
  "readSync in a loop": `const fs = require("fs");
CODE
function readAll() {
  const buffer = Buffer.alloc(64);
  let text = "";
  for (let read; (read = fs.readSync(0, buffer, 0, buffer.length, null)) > 0; ) text += buffer.toString("latin1", 0, read);
  return text;
}
const rows = readAll().trim().split("\\n").map((line) => line.split(" ").map(Number));
setTimeout(() => solve(rows).map((line) => console.info(\`\${line}\`)), 0);
`,
};
