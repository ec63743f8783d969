// The data of a view that was written as files: scripts that hand their JSON to `gavelData`, files of lines as a list. What the server does with
// them is done here: host/view/src/filter.rs, page.rs, scores.rs and sample.rs.
import { serverSource } from "./source.js";

const waitingData = new Map();
const loadedData = new Map();

// Loads a script of data once.
function loadData(key) {
  if (!loadedData.has(key)) {
    loadedData.set(key, new Promise((done, fail) => {
      waitingData.set(key, done);
      const script = document.createElement("script");
      script.src = `data/${key}.js`;
      script.addEventListener("error", () => fail(new Error(`the file data/${key}.js is missing\nhint: copy the whole folder`)));
      document.head.append(script);
    }));
  }
  return loadedData.get(key);
}

function withinBounds(value, low, high) {
  return (low == null || value >= low) && (high == null || value <= high) && (value != null || (low == null && high == null));
}

function passesFilter(row, filter) {
  const [score, outcome] = filter.plugin ? row.plugins[filter.plugin] ?? [null, null] : [null, row.outcome];
  const isOneOf = (wanted, value) => !wanted?.length || wanted.includes(value);
  return withinBounds(row.step, filter.step_min, filter.step_max)
    && withinBounds(row.reward, filter.reward_min, filter.reward_max)
    && withinBounds(row.response_length, filter.length_min, filter.length_max)
    && withinBounds(score, filter.score_min, filter.score_max)
    && isOneOf(filter.outcomes, outcome) && isOneOf(filter.finish, row.finish_reason)
    && isOneOf(filter.sources, row.data_source) && isOneOf(filter.speakers, row.speaker)
    && (!filter.plugin || outcome != null);
}

function sortKey(row, request) {
  const score = row.plugins[request.filter.plugin]?.[0];
  const keys = { step: 0, reward: row.reward, advantage: row.advantage, length: row.response_length, turns: row.turns, time: row.elapsed_us, score };
  const other = request.filter.against ? row.plugins[request.filter.against]?.[0] : row.reward;
  if (request.sort === "disagreement") return score == null || other == null ? null : Math.abs(score - other);
  return keys[request.sort ?? "step"];
}

function rowPlace(row) {
  return [row.step, ...row.id.split(".").map(Number), row.trajectory];
}

function compareRows(request, one, other) {
  const turn = request.descending ? -1 : 1;
  const [a, b] = [sortKey(one, request), sortKey(other, request)];
  if ((a == null) !== (b == null)) return a == null ? 1 : -1;
  if (a !== b && a != null) return turn * (a - b);
  const [here, there] = [rowPlace(one), rowPlace(other)];
  const at = here.findIndex((value, number) => value !== there[number]);
  return at < 0 ? 0 : turn * (here[at] - there[at]);
}

function hasText(value, needle, fold) {
  if (typeof value === "string") return (fold ? value.toLowerCase() : value).includes(needle);
  if (Array.isArray(value)) return value.some((part) => hasText(part, needle, fold));
  return value != null && typeof value === "object"
    && Object.entries(value).some(([name, part]) => name !== "role" && hasText(part, needle, fold));
}

async function lineOf(run, [file, row]) {
  const lines = await loadData(`${run}/lines-${file}`);
  return lines.find((line) => line && line.id === row.id && (line.trajectory ?? 0) === row.trajectory);
}

async function fileSamples(run, request) {
  const { index, rows } = await loadData(`${run}/rows`);
  const filter = request.filter ?? {};
  let found = rows.filter(([, row]) => passesFilter(row, filter));
  let search = null;
  if (filter.text) {
    const needle = filter.ignore_case ? filter.text.toLowerCase() : filter.text;
    const matched = [];
    for (const entry of found) {
      const line = await lineOf(run, entry);
      if (line && [line.prompt, line.opening, line.messages].some((part) => hasText(part, needle, filter.ignore_case))) matched.push(entry);
    }
    search = { searched: found.length, candidates: found.length, is_complete: true };
    found = matched;
  }
  found.sort(([, one], [, other]) => compareRows({ ...request, filter }, one, other));
  const page = found.slice(request.offset ?? 0, (request.offset ?? 0) + (request.limit ?? 50));
  const shownRows = await Promise.all(page.map(async (entry) => {
    const line = await lineOf(run, entry);
    return { ...entry[1], preview: String(line?.response || line?.reason || "").slice(0, 160) };
  }));
  return { rows: shownRows, matched: found.length, index, search };
}

async function fileSample(run, id) {
  const { rows } = await loadData(`${run}/rows`);
  const own = rows.flatMap((entry, number) => (entry[1].id === id ? [number] : []));
  if (!own.length) throw new Error(`there is no sample ${id}`);
  const group = `${id.split(".").slice(0, 2).join(".")}.`;
  const siblings = rows.filter(([, row]) => row.id.startsWith(group) && row.trajectory === 0);
  const trajectories = await Promise.all(own.map((at) => lineOf(run, rows[at])));
  const beside = await Promise.all(siblings.map(async (entry) => ({ ...entry[1], preview: ((await lineOf(run, entry))?.response ?? "").slice(0, 4000) })));
  return { id, trajectories, group: beside, before: rows[own[0] - 1]?.[1].id, after: rows[own.at(-1) + 1]?.[1].id };
}

async function fileHistogram(run, request) {
  const bins = 24;
  const { rows } = await loadData(`${run}/rows`);
  const scored = rows.map(([, row]) => row).filter((row) => row.trajectory === 0)
    .map((row) => [row.step, request.plugin ? row.plugins[request.plugin]?.[0] ?? null : row.reward]);
  const scores = scored.map(([, score]) => score).filter((score) => score != null);
  if (!scored.length) return { low: 0, high: 0, ranges: [] };
  const [low, high] = scores.reduce(([a, b], s) => [Math.min(a, s), Math.max(b, s)], [Infinity, -Infinity]);
  const [first, last] = scored.reduce(([a, b], [s]) => [Math.min(a, s), Math.max(b, s)], [Infinity, -Infinity]);
  const width = Math.max(1, Math.floor((last - first) / request.ranges) + 1);
  const ranges = Array.from({ length: Math.floor((last - first) / width) + 1 }, (_, at) => (
    { first: first + at * width, last: Math.min(last, first + (at + 1) * width - 1), unscored: 0, bins: Array(bins).fill(0) }));
  for (const [step, score] of scored) {
    const range = ranges[Math.floor((step - first) / width)];
    if (score == null) range.unscored++;
    else range.bins[Math.min(bins - 1, high > low ? Math.floor(((score - low) / (high - low)) * bins) : 0)]++;
  }
  return scores.length ? { low, high, ranges } : { low: 0, high: 0, ranges };
}

const MOST_POINTS = 4000;

// Of many rows, those with the lowest and the highest value of each of equal parts.
function thinnedRows(rows, value) {
  if (rows.length <= MOST_POINTS) return rows;
  const part = Math.ceil(rows.length / (MOST_POINTS / 2));
  return Array.from({ length: Math.ceil(rows.length / part) }, (_, at) => rows.slice(at * part, (at + 1) * part)).flatMap((some) => {
    const ends = some.reduce(([low, high], row) => [value(row) < value(low) ? row : low, value(row) >= value(high) ? row : high], [some[0], some[0]]);
    return [...new Set(ends)].sort((one, other) => one - other);
  });
}

async function fileSeries(run, request) {
  const { generation, rows, axes, columns } = await loadData(`${run}/metrics`);
  const [axis, steps] = [axes[request.axis ?? "step"], axes.step];
  const [low, high] = request.range ?? [-Infinity, Infinity];
  const inRange = axis.flatMap((x, row) => (x != null && steps[row] != null && x >= low && x <= high ? [row] : []));
  const valueAt = (name, row) => columns[name]?.[row] ?? null;
  const curveOf = (name, some, kept) => ({ x: kept.map((row) => axis[row]), step: kept.map((row) => steps[row]), y: kept.map((row) => valueAt(name, row)), is_thinned: request.range != null || kept.length < some.length });
  let shared = null;
  if (request.together) {
    const having = inRange.filter((row) => request.names.some((name) => valueAt(name, row) != null));
    shared = [having, thinnedRows(having, (row) => request.names.reduce((sum, name) => sum + valueAt(name, row), 0))];
  }
  const pointsOf = (name) => {
    const having = inRange.filter((row) => valueAt(name, row) != null);
    return [having, thinnedRows(having, (row) => valueAt(name, row))];
  };
  return { generation, rows, after: 0, curves: Object.fromEntries(request.names.map((name) => [name, curveOf(name, ...(shared ?? pointsOf(name)))])) };
}

async function fileTokens(run) {
  const found = await loadData(`${run}/tokens`);
  if (found.error) throw new Error(found.error);
  return found;
}

const fileSource = {
  isLive: false,
  runs: async () => (await loadData("runs")).runs,
  details: async (run) => (await loadData("runs")).details[run],
  difference: async (one, other) => (await loadData("runs")).differences[one][other],
  series: fileSeries,
  samples: fileSamples,
  sample: fileSample,
  histogram: fileHistogram,
  step: (run, step) => loadData(`${run}/step-${step}`),
  evaluations: () => loadData("evaluations"),
  answers: (number) => loadData(`evaluation-${number}`),
  answersTo: async (number, row, source) => (await loadData(`answers-${number}`)).filter((line) => !line.trajectory && String(line.task_id ?? line.id) === row && (line.data_source ?? "") === source),
  findings: (run) => loadData(`${run}/findings`),
  tokens: fileTokens,
};

// The source that the page was made for.
export function chooseSource() {
  if (document.querySelector('meta[name="source"]').content !== "files") return serverSource;
  globalThis.gavelData = (key, value) => waitingData.get(key)?.(Array.isArray(value) ? value.map((line) => JSON.parse(line)) : JSON.parse(value));
  return fileSource;
}
