// The event loop: timers, immediates and what waits for input, in the order of Node.js. Time is the sandbox's: a wait
// costs nothing.

/** The longest delay; Node.js takes a longer one for 1. */
const LONGEST = 2 ** 31 - 1;

class Timer {
  constructor(loop, time, delay, repeats, callback, values) {
    Object.assign(this, { time, delay, repeats, callback, values, isOpen: true });
    Object.defineProperty(this, "loop", { value: loop });
  }

  ref() {
    this.isUnreferenced = false;
    return this;
  }

  unref() {
    this.isUnreferenced = true;
    return this;
  }

  hasRef() {
    return !this.isUnreferenced;
  }

  refresh() {
    this.time = this.loop.now + this.delay;
    return this;
  }

  close() {
    this.loop.clear(this);
    return this;
  }

  [Symbol.toPrimitive]() {
    this.loop.byNumber.set(this.number, this);
    return this.number;
  }
}

export class Loop {
  now = 0;
  byNumber = new Map();
  #next = 1;
  #timers = new Set();
  #immediates = new Set();
  #ticks = [];
  #sources = [];
  #isRunning = false;
  #wait;

  constructor(wait) {
    this.#wait = wait;
  }

  timer(callback, delay, values, repeats) {
    if (typeof callback !== "function") throw new TypeError('The "callback" argument must be of type function');
    delay = Number(delay);
    delay = delay >= 1 && delay <= LONGEST ? Math.trunc(delay) : 1;
    const timer = new Timer(this, this.now + delay, delay, repeats, callback, values);
    Object.defineProperty(timer, "number", { value: this.#next });
    this.#next += 1;
    this.#timers.add(timer);
    return timer;
  }

  immediate(callback, values) {
    if (typeof callback !== "function") throw new TypeError('The "callback" argument must be of type function');
    const immediate = new Timer(this, 0, 0, false, callback, values);
    this.#immediates.add(immediate);
    return immediate;
  }

  clear(timer) {
    if (typeof timer === "number" || typeof timer === "string") timer = this.byNumber.get(Number(timer));
    if (!(timer instanceof Timer)) return;
    timer.isOpen = false;
    this.#timers.delete(timer);
    this.#immediates.delete(timer);
  }

  /** Runs `callback` before what promises have to do, as far as that has not begun. */
  tick(callback, values) {
    if (typeof callback !== "function") throw new TypeError('The "callback" argument must be of type function');
    this.#ticks.push([callback, values]);
    if (!this.#isRunning && this.#ticks.length === 1) Promise.resolve().then(() => this.#drain());
  }

  /** Adds a source of events: it returns what there is to do next, or null. */
  source(next) {
    this.#sources.push(next);
  }

  /** Runs `work`, and then the ticks that it added. */
  do(work) {
    this.#isRunning = true;
    try {
      work();
      this.#drain();
    } catch (error) {
      this.escaped(error);
    } finally {
      this.#isRunning = false;
    }
  }

  /** What becomes of an error that nothing caught. */
  escaped(error) {
    throw error;
  }

  #drain() {
    while (this.#ticks.length > 0) {
      const [callback, values] = this.#ticks.shift();
      callback(...values);
    }
  }

  /** Runs until there is nothing left to do. */
  async run() {
    // What promises have to do comes first.
    await this.#wait(0);
    for (;;) {
      let isIdle = true;
      const due = [...this.#timers].filter((timer) => timer.time <= this.now + 1).sort((one, other) => one.time - other.time);
      if (due.length > 0) this.now = Math.max(this.now, due[0].time);
      for (const timer of due) {
        if (!timer.isOpen || timer.time > this.now + 1) continue;
        isIdle = false;
        if (timer.repeats) timer.time = Math.max(this.now, timer.time) + timer.delay;
        else this.clear(timer);
        this.do(() => timer.callback(...timer.values));
        await this.#wait(0);
      }
      for (const next of this.#sources) {
        const work = next();
        if (work === null) continue;
        isIdle = false;
        this.do(work);
        await this.#wait(0);
      }
      const immediates = this.#immediates;
      this.#immediates = new Set();
      for (const immediate of immediates) {
        if (!immediate.isOpen) continue;
        isIdle = false;
        immediate.isOpen = false;
        this.do(() => immediate.callback(...immediate.values));
        await this.#wait(0);
      }
      if (!isIdle) continue;
      let first = Infinity;
      let isOpen = false;
      for (const timer of this.#timers) {
        first = Math.min(first, timer.time);
        isOpen ||= timer.hasRef();
      }
      if (!isOpen) return;
      await this.#wait(Math.max(0, first - this.now));
      this.now = Math.max(this.now, first);
    }
  }
}
