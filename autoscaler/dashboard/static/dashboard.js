// The page: asks for the newest tick, keeps the history of the chosen pool, and draws it.
import { fetchFleet, fetchPool } from "./api.js";
import { PoolCharts } from "./charts.js";
import { showAnswer, showChanges, showHeader, showNotice } from "./words.js";

const POLL_MILLISECONDS = 1000;

let chosen = location.hash.slice(1);
let charts = new PoolCharts();

function key(pool) {
  return `${pool.namespace}/${pool.name}`;
}

function offerPools(pools) {
  const select = document.getElementById("pool");
  const names = pools.map(key);
  if (names.join() !== [...select.options].map((option) => option.value).join()) {
    select.replaceChildren(...names.map((name) => new Option(name, name)));
  }
  if (!names.includes(chosen)) chosen = names[0] ?? "";
  select.value = chosen;
}

async function refresh() {
  const fleet = await fetchFleet();
  showHeader(fleet);
  offerPools(fleet.pools);
  const summary = fleet.pools.find((pool) => key(pool) === chosen);
  if (!summary) {
    showNotice("No pool has been seen yet.");
    return;
  }
  if (fleet.nowSeconds < charts.newestSeconds) startCharts(); // another process answers now, with a history of its own
  const mine = charts;
  const pool = await fetchPool(summary.namespace, summary.name, mine.newestSeconds);
  if (mine !== charts) return; // another pool was chosen meanwhile
  mine.add(pool.series, pool.maxReplicas, pool.forecast);
  showNotice(pool.problem && `Nothing was decided at the last tick: ${pool.problem}`);
  showAnswer(pool, mine.colourOfVote);
  showChanges(pool.changes);
}

async function poll() {
  try {
    if (!document.hidden) await refresh();
  } catch (error) {
    showNotice(`No answer from Tokenscaler (${error.message}). The page shows what was last known and tries again.`);
  }
  setTimeout(poll, POLL_MILLISECONDS);
}

function startCharts() {
  charts.remove();
  charts = new PoolCharts();
}

function startAnew() {
  startCharts();
  refresh().catch(() => {}); // the next poll says what is wrong
}

document.getElementById("pool").addEventListener("change", (event) => {
  chosen = event.target.value;
  history.replaceState(null, "", `#${chosen}`);
  startAnew();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", startAnew);
poll();
