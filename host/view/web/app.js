import { el, failure, number } from "./dom.js";
import { change, hashOf, readState } from "./state.js";
import { chooseSource } from "./files.js";
import { colourOf } from "./chart.js";
import { showCurves } from "./curves.js";
import { showSamples } from "./samples.js";
import { showSample } from "./sample.js";
import { showRewards } from "./rewards.js";
import { showSuspects } from "./suspects.js";
import { showStep } from "./steps.js";
import { showEvaluation } from "./evaluation.js";
import { showRun } from "./run.js";

const VIEWS = { curves: ["Curves", showCurves], samples: ["Samples", showSamples], sample: [null, showSample], rewards: ["Rewards", showRewards], suspects: ["Suspects", showSuspects], step: ["Step", showStep], evaluation: ["Evaluation", showEvaluation], run: ["Run", showRun] };
const KEYS = { 1: "curves", 2: "samples", 3: "rewards", 4: "suspects", 5: "step", 6: "evaluation", 7: "run" };
const MOST_DRAWN = 4;
const source = chooseSource();
const page = { main: document.getElementById("main"), runs: [], shown: {}, view: null, turn: 0 };

// Without a choice, the first runs are drawn.
function drawnRuns() {
  const chosen = readState().params.get("runs");
  const numbers = chosen == null ? page.runs.slice(0, MOST_DRAWN).map((run) => run.number) : chosen.split(",").filter(Boolean).map(Number);
  return page.runs.filter((run) => numbers.includes(run.number));
}

function drawNav(view) {
  const { params } = readState();
  const kept = { run: params.get("run"), runs: params.get("runs") };
  document.getElementById("nav").replaceChildren(...Object.entries(VIEWS).filter(([, [title]]) => title).map(([name, [title]]) => (
    el("a", { href: hashOf(name, kept), "aria-current": name === view || (name === "samples" && view === "sample") ? "page" : null }, title))));
}

function stateOf(run) {
  if (run.error) return run.error.split("\nhint: ")[0];
  const { state, step, steps } = run.overview;
  return `${state}${step == null ? "" : `, step ${number(step)}${steps ? ` of ${number(steps)}` : ""}`}${run.damaged ? `, ${run.damaged} damaged lines` : ""}`;
}

function drawRuns(view) {
  const drawn = drawnRuns().map((run) => run.number);
  const isChoice = view === "curves" && page.runs.length > 1;
  const toggle = (at) => change({ runs: page.runs.map((run) => run.number).filter((run) => drawn.includes(run) !== (run === at)).join(",") || "," });
  const items = page.runs.map((run) => el("li", { class: run.error ? "failed" : "" },
    el("label", {}, isChoice && el("input", { type: "checkbox", checked: drawn.includes(run.number), on: { change: () => toggle(run.number) } }), el("i", { css: { background: colourOf(run.number) } }), el("b", {}, run.name), " ", el("small", {}, stateOf(run)))));
  const holder = document.getElementById("runs");
  if (holder.contains(document.activeElement)) return;
  holder.replaceChildren(el("ul", { "aria-label": "Runs" }, items));
}

async function show() {
  const { view } = readState();
  const [title, draw] = VIEWS[view] ?? [null, null];
  const turn = ++page.turn;
  page.shown.left?.();
  // A key that is pressed meanwhile is not lost.
  page.shown = page.view === view ? { keys: page.shown.keys } : {};
  page.view = view;
  document.title = `${title ?? "Sample"} – gavel view`;
  drawNav(view);
  drawRuns(view);
  try {
    if (!draw) throw new Error(`there is no view ${view}\nhint: choose one above`);
    if (!page.runs.length && view !== "evaluation") throw new Error("no run is shown here\nhint: choose Evaluation for saved answers");
    // An answer that comes when another view is shown must not be drawn over it.
    const isCurrent = () => turn === page.turn;
    const shown = await draw(page.main, { source, runs: drawnRuns(), allRuns: page.runs, isCurrent });
    if (turn === page.turn) page.shown = shown ?? {};
    else shown?.left?.();
  } catch (error) {
    if (turn === page.turn) page.main.replaceChildren(failure(error));
  }
}

function growthOf(runs) {
  return JSON.stringify(runs.map((run) => [run.generation, run.rows, run.error]));
}

// Looks for what runs have added.
async function follow() {
  try {
    const runs = await source.runs();
    document.getElementById("live").textContent = "";
    const isGrown = growthOf(runs) !== growthOf(page.runs);
    page.runs = runs;
    drawRuns(readState().view);
    if (isGrown) page.shown.grown?.(drawnRuns());
  } catch (error) {
    document.getElementById("live").textContent = String(error.message).split("\n")[0];
  }
  setTimeout(follow, document.hidden ? 10000 : 2000);
}

function press(event) {
  const isTyping = event.target.matches?.("input:not([type=checkbox]), select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const act = page.shown.keys?.[event.key] ?? (KEYS[event.key] && (() => { location.hash = hashOf(KEYS[event.key], { run: readState().params.get("run"), runs: readState().params.get("runs") }); }));
  if (act) {
    event.preventDefault();
    act();
  }
}

async function start() {
  // The token has become a cookie: it is not left in the address, which people copy.
  const address = new URL(location.href);
  if (address.searchParams.has("token")) history.replaceState(null, "", address.pathname + address.hash);
  try {
    page.runs = await source.runs();
  } catch (error) {
    page.main.replaceChildren(failure(error));
    return;
  }
  window.addEventListener("hashchange", show);
  window.addEventListener("gavelstate", show);
  document.addEventListener("keydown", press);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  let width = window.innerWidth, resized = 0;
  window.addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => {
      if (Math.abs(window.innerWidth - width) > 40) show();
      width = window.innerWidth;
    }, 250);
  });
  await show();
  if (source.isLive) setTimeout(follow, 2000);
}

start();
