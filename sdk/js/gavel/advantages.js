// Advantages: the numbers of a step, and what an estimator returns of them.

/** A group of the host as the rule gets it. */
export function groupOfHost({ taskId, dataSource, speaker, samples }) {
  return { taskId, dataSource: dataSource ?? null, speaker, samples: samples.map(sampleOfHost) };
}

function sampleOfHost({ index, reward, parts, trajectories }) {
  return { index, reward, parts: parts.map(partOfHost), trajectories: trajectories.map(trajectoryOfHost) };
}

function partOfHost({ reward, weight, score, counted, metrics }) {
  return { reward, weight, score: score ?? null, counted, metrics: Object.fromEntries(metrics.map(({ name, value }) => [name, value])) };
}

function trajectoryOfHost({ learned, credit, oldestVersion, newestVersion, ...numbers }) {
  const version = (found) => (found == null ? null : Number(found));
  return {
    ...numbers,
    learned: learned.map(({ start, end }) => [start, end]),
    credit: credit.map(({ tokens, value }) => ({ ...tokens, value })),
    oldestVersion: version(oldestVersion),
    newestVersion: version(newestVersion),
  };
}

/** What an estimator returned, as the record of the contract. */
export function asEstimates(value) {
  const { advantages, state = new Uint8Array() } = Array.isArray(value) ? { advantages: value } : (value ?? {});
  if (!Array.isArray(advantages)) throw new TypeError("an advantage returns an array with the advantages of each group");
  if (!(state instanceof Uint8Array)) throw new TypeError("the `state` of an advantage is a Uint8Array");
  const ofGroup = (group) => {
    if (!Array.isArray(group)) throw new TypeError("an advantage returns an array for each group, with one advantage for each sample");
    return group.map(ofSample);
  };
  return { advantages: advantages.map(ofGroup), state };
}

function ofSample(advantage) {
  if (!isList(advantage)) return { tag: "sample", val: number(advantage) };
  const val = [...advantage];
  if (!val.some(isList)) return { tag: "trajectories", val: val.map(number) };
  const tokens = (values) => {
    if (!isList(values)) throw new TypeError("an advantage has a number for each trajectory of a sample, or an array for each");
    return Array.from(values, number);
  };
  return { tag: "tokens", val: val.map(tokens) };
}

// What is no number, such as null, would become 0.
function number(value) {
  if (typeof value !== "number") throw new TypeError(`an advantage is a number, not ${value === null ? "null" : typeof value}`);
  return value;
}

function isList(value) {
  return Array.isArray(value) || ArrayBuffer.isView(value);
}

/** The number of tokens of a trajectory that are learned from. */
export function learnedTokens(trajectory) {
  return trajectory.learned.reduce((sum, [start, end]) => sum + end - start, 0);
}

/** The same value for all learned tokens of a trajectory, and 0 for the others. */
export function spread(trajectory, value) {
  const values = new Array(trajectory.responseTokens).fill(0);
  for (const [start, end] of trajectory.learned) values.fill(value, start, end);
  return values;
}
