// The tasks that an agent attempts.

import { asMessages } from "./messages.js";
import { Message } from "./sample.js";

/** A row of the dataset, without its answer key. */
export class Task {
  constructor(prompt, { id = "", dataSource = null, groupIndex = 0, settings = {} } = {}) {
    Object.assign(this, { prompt: asMessages(prompt), id, dataSource, groupIndex, settings });
  }

  static ofHost(handle) {
    return new Task(handle.prompt().map(Message.ofHost), {
      id: handle.id(),
      dataSource: handle.dataSource() ?? null,
      groupIndex: handle.groupIndex(),
      settings: JSON.parse(handle.settings()),
    });
  }
}
