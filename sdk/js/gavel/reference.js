// The answer key.

import { InvalidInput } from "./verdict.js";

const EXPECTED = "`reward_model.ground_truth`, `ground_truth`, `answer` or `solution`";

export class Reference {
  #handle;

  /** In a test: `new Reference({ answer: "42" })`. */
  constructor(row = {}) {
    this.#handle = new Row(row);
  }

  static ofHost(handle) {
    const reference = new Reference();
    reference.#handle = handle;
    return reference;
  }

  get groundTruth() {
    return this.#handle.groundTruth() ?? null;
  }

  requireGroundTruth() {
    const truth = this.groundTruth;
    if (truth === null) throw new InvalidInput(`the row has no ground truth: expected ${EXPECTED}`);
    return truth;
  }

  get(name) {
    const json = this.#handle.column(name) ?? null;
    return json === null ? undefined : JSON.parse(json);
  }

  require(name) {
    const value = this.get(name) ?? null;
    if (value === null) {
      const columns = this.columnNames.join(", ");
      throw new InvalidInput(`the row has no value in the column \`${name}\` (its columns: ${columns})`);
    }
    return value;
  }

  get columnNames() {
    return this.#handle.columnNames();
  }

  get columns() {
    return JSON.parse(this.#handle.columns());
  }
}

/** A row in place of the host's. */
class Row {
  #row;

  constructor(row) {
    this.#row = JSON.parse(JSON.stringify(row));
  }

  groundTruth() {
    const { reward_model: model, ground_truth, answer, solution } = this.#row;
    const value = model?.ground_truth ?? ground_truth ?? answer ?? solution ?? null;
    return value === null || typeof value === "string" ? value : JSON.stringify(value);
  }

  column(name) {
    return Object.hasOwn(this.#row, name) ? JSON.stringify(this.#row[name]) : null;
  }

  columnNames() {
    return Object.keys(this.#row);
  }

  columns() {
    return JSON.stringify(this.#row);
  }
}
