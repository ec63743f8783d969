// Makes functions the exports of a component.

/** The exports of the plugin, by the name of the interface. */
export const exported = new Map();

export function reward(rule, options = {}) {
  return add("reward", rule, options, ["params", "pure", "scoreRange", "version"]);
}

export function judger(rule, options = {}) {
  return add("judger", rule, options, ["params", "pure", "scoreRange", "version"]);
}

export function taskset(rule, options = {}) {
  return add("taskset", rule, options, ["params", "length", "version"]);
}

export function agent(rule, options = {}) {
  return add("agent", rule, options, ["params", "pure", "version"]);
}

export function advantage(rule, options = {}) {
  return add("advantage", rule, options, ["params", "pure", "version"]);
}

export function sampler(rule, options = {}) {
  return add("sampler", rule, options, ["params", "pure", "version"]);
}

export function tool(described) {
  const { functions = {}, ...options } = described ?? {};
  check("tool", options, ["params", "open", "finish", "functions", "pure", "version"]);
  if (options.finish !== undefined && typeof options.finish !== "function") throw new TypeError("`finish` of a tool is a function of its state");
  const all = Object.entries(functions);
  if (all.length === 0) throw new TypeError("a tool has `functions`, each with `description`, `parameters` and `call`");
  for (const [name, { description, call }] of all) {
    if (typeof description !== "string") throw new TypeError(`the function \`${name}\` has no \`description\`, which the policy reads`);
    if (typeof call !== "function") throw new TypeError(`the function \`${name}\` has no \`call\``);
  }
  exported.set("tool", { ...options, functions: new Map(all) });
  return described;
}

function add(kind, rule, options, known) {
  if (typeof rule !== "function") throw new TypeError(`${a(kind)} is a function, not ${typeof rule}`);
  check(kind, options, known);
  exported.set(kind, { rule, ...options });
  return rule;
}

function check(kind, options, known) {
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new TypeError(`${a(kind)} has no option \`${unknown}\`; it has: ${known.join(", ")}`);
  if (exported.has(kind)) throw new TypeError(`there are two ${kind}s: a component has one`);
}

/** The kind with its article. */
export function a(kind) {
  return kind.startsWith("a") ? `an ${kind}` : `a ${kind}`;
}

/** The parameters of a run as the rule gets them; throws if one is wrong. */
export function readParams(declared = {}, given) {
  if (kindOf(given) !== "object") throw new TypeError(`the parameters must be an object, not ${kindOf(given)}`);
  if (typeof declared === "function") return declared(given);
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(declared, name)) {
      const known = Object.keys(declared).map((key) => `\`${key}\``);
      const takes = known.length > 0 ? `expected one of ${known.join(", ")}` : "this plugin takes none";
      throw new TypeError(`unknown parameter \`${name}\`: ${takes}`);
    }
    const [expected, found] = [kindOf(declared[name]), kindOf(value)];
    // A default of null allows any kind.
    if (expected !== "null" && expected !== found) throw new TypeError(`parameter \`${name}\`: expected ${expected}, not ${found}`);
  }
  return { ...declared, ...given };
}

function kindOf(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "list" : typeof value;
}
