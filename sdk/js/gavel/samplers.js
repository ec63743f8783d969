// Samplers: what a run asks, and the tasks that a sampler draws.

/** A request of the host as the rule gets it. */
export function requestOfHost({ step, seed, datasets, ended, wanted, nextDraw, state }) {
  const sizes = datasets.map(({ rows, weight }) => ({ rows: Number(rows), weight: weight ?? null }));
  const first = (dataset) => sizes.slice(0, dataset).reduce((sum, { rows }) => sum + rows, 0);
  return {
    step: Number(step),
    seed,
    datasets: sizes,
    rows: first(sizes.length),
    ended: ended.map((group) => groupOfHost(group, first)),
    wanted,
    nextDraw: Number(nextDraw),
    // The host's own list is no Uint8Array within a component.
    state: Uint8Array.from(state),
  };
}

function groupOfHost({ draw, task, taskId, dataSource, version, samples, dropped }, first) {
  return {
    draw: Number(draw),
    row: first(task.dataset) + Number(task.row),
    dataset: task.dataset,
    taskId,
    dataSource: dataSource ?? null,
    version: Number(version),
    samples: samples.map(sampleOfHost),
    dropped: dropped ?? null,
  };
}

function sampleOfHost({ outcome, reward, metrics }) {
  return { outcome, reward: reward ?? null, metrics: Object.fromEntries(metrics.map(({ name, value }) => [name, value])) };
}

/** What a sampler returned, as the record of the contract. */
export function asAnswer(value, datasets) {
  const { draws, refusals = {}, state = new Uint8Array() } = Array.isArray(value) ? { draws: value } : (value ?? {});
  if (!Array.isArray(draws)) throw new TypeError("a sampler returns an array of tasks, or an object with `draws`");
  if (!(state instanceof Uint8Array)) throw new TypeError("the `state` of a sampler is a Uint8Array");
  return {
    draws: draws.map((task) => asTask(task, datasets)),
    refusals: Object.entries(refusals).map(([draw, reason]) => ({ draw: BigInt(draw), reason: String(reason) })),
    state,
  };
}

// A row that does not exist is of a dataset that does not exist, which the host refuses.
function asTask(task, datasets) {
  const [dataset, row] = Array.isArray(task) && task.length === 2 ? task : placeOf(task, datasets);
  const isCount = (part, most) => Number.isSafeInteger(part) && part >= 0 && part <= most;
  // Beyond 32 bits, the host would get what is left of the number.
  if (!isCount(dataset, 0xffffffff) || !isCount(row, Number.MAX_SAFE_INTEGER)) {
    throw new TypeError("a sampler draws the number of a row, or an array of a dataset and a row");
  }
  return { dataset, row: BigInt(row) };
}

function placeOf(row, datasets) {
  for (const [dataset, { rows }] of datasets.entries()) {
    if (row < rows) return [dataset, row];
    row -= rows;
  }
  return [datasets.length, row];
}

/** The mean reward of the samples of a group that have one; null if there are none. */
export function meanReward({ samples }) {
  const rewards = samples.map(({ reward }) => reward).filter((reward) => reward !== null);
  return rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
}

/** Random numbers that follow from a seed: SplitMix64. */
export class Random {
  #state;

  constructor(seed) {
    this.#state = BigInt(seed);
  }

  /** A number from 0 up to, but not including, 1. */
  uniform() {
    const bits = (value) => BigInt.asUintN(64, value);
    this.#state = bits(this.#state + 0x9e3779b97f4a7c15n);
    let mixed = this.#state;
    mixed = bits((mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = bits((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    return Number((mixed ^ (mixed >> 31n)) >> 11n) / 2 ** 53;
  }

  /** A whole number from 0 up to, but not including, `end`. */
  below(end) {
    return Math.floor(this.uniform() * end);
  }
}
