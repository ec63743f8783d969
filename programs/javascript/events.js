// The module `events` of Node.js, as far as programs that read and print use it.

const lists = new WeakMap();

/** The listeners of an emitter by the names of their events. A class of the old form never calls the constructor. */
function listenersOf(emitter) {
  if (!lists.has(emitter)) lists.set(emitter, new Map());
  return lists.get(emitter);
}

class Methods {
  on(name, listener) {
    return add(this, name, listener, false, false);
  }

  addListener(name, listener) {
    return this.on(name, listener);
  }

  prependListener(name, listener) {
    return add(this, name, listener, false, true);
  }

  once(name, listener) {
    return add(this, name, listener, true, false);
  }

  off(name, listener) {
    const all = listenersOf(this).get(name) ?? [];
    const at = all.findLastIndex((each) => each.listener === listener);
    if (at >= 0) listenersOf(this).set(name, all.toSpliced(at, 1));
    return this;
  }

  removeListener(name, listener) {
    return this.off(name, listener);
  }

  removeAllListeners(name) {
    if (name === undefined) listenersOf(this).clear();
    else listenersOf(this).delete(name);
    return this;
  }

  emit(name, ...values) {
    const all = listenersOf(this).get(name) ?? [];
    if (all.length === 0 && name === "error") {
      throw values[0] instanceof Error ? values[0] : new Error(`Unhandled error. (${String(values[0])})`);
    }
    for (const each of all) {
      if (each.once) this.off(name, each.listener);
      each.listener.apply(this, values);
    }
    return all.length > 0;
  }

  listeners(name) {
    return (listenersOf(this).get(name) ?? []).map(({ listener }) => listener);
  }

  listenerCount(name) {
    return (listenersOf(this).get(name) ?? []).length;
  }

  eventNames() {
    return [...listenersOf(this).keys()].filter((name) => this.listenerCount(name) > 0);
  }

  setMaxListeners() {
    return this;
  }
}

function add(emitter, name, listener, once, first) {
  if (typeof listener !== "function") throw new TypeError('The "listener" argument must be of type function');
  const all = listenersOf(emitter).get(name) ?? [];
  const added = { listener, once };
  listenersOf(emitter).set(name, first ? [added, ...all] : [...all, added]);
  return emitter;
}

/** A function and no class, as classes of the old form call it without `new`: `EventEmitter.call(this)`. */
export function EventEmitter() {}
for (const [name, method] of Object.entries(Object.getOwnPropertyDescriptors(Methods.prototype))) {
  if (name !== "constructor") Object.defineProperty(EventEmitter.prototype, name, method);
}

/** A promise for the arguments of the next event of this name. */
EventEmitter.once = (emitter, name) => {
  return new Promise((resolve, reject) => {
    emitter.once(name, (...values) => resolve(values));
    if (name !== "error") emitter.once("error", reject);
  });
};
EventEmitter.EventEmitter = EventEmitter;
EventEmitter.defaultMaxListeners = 10;
