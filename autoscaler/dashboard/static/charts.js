// The four charts of one pool over a common time axis, and the history they draw.
import uPlot from "./uplot/uPlot.esm.js";

const VOTE = "vote/";
const BAND = ["expectedHigh", "expectedLow"]; // the last and the first quantile of a forecast: at(-1) and at(0)
const KEPT_ROWS = 2000;
const HEIGHT = 250;
const COLOURS = 8;
const sync = uPlot.sync("pool");

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function colour(index) {
  return style(`--series-${(index % COLOURS) + 1}`);
}

function shortNumber(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (Math.abs(value) >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return String(+value.toPrecision(4));
}

const clockTime = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", hour: "2-digit", minute: "2-digit", second: "2-digit" });

// With seconds where the marks are less than a minute apart, else all of them would read alike.
function clockTimes(_, splits) {
  const length = splits[1] - splits[0] < 60 ? 8 : 5;
  return splits.map((split) => clockTime.format(split * 1000).slice(0, length));
}

function axis(options = {}) {
  return {
    stroke: style("--quiet"),
    grid: { stroke: style("--grid"), width: 1 },
    ticks: { stroke: style("--line"), width: 1, size: 4 },
    font: "12px system-ui, sans-serif",
    size: 52,
    values: (_, splits) => splits.map(shortNumber),
    ...options,
  };
}

function line(label, index, options = {}) {
  return {
    label,
    stroke: colour(index),
    width: 1.75,
    points: { show: false },
    spanGaps: false,
    value: (_, value) => shortNumber(value),
    ...options,
  };
}

const WHOLE = { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000] };
const stepped = uPlot.paths.stepped({ align: 1 });
const VOTES_SHOWN = 1.25; // times the largest count that is allowed: a vote may be far above it
const SPARSE = { spanGaps: true, points: { show: false } };
const fromZero = (_, low, high) => [0, Math.max(1, (high ?? 1) * 1.08)];
const fromZeroSmall = (_, low, high) => [0, Math.max(0.1, (high ?? 0.1) * 1.08)];

function draw(element, series, options = {}) {
  return new uPlot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      cursor: { sync: { key: sync.key }, drag: { x: true, y: false } },
      scales: { x: { time: true }, y: { range: fromZero }, ...options.scales },
      axes: [
        axis({ size: 34, space: 70, values: clockTimes }),
        axis(options.y),
        ...(options.axes ?? []),
      ],
      legend: { live: true },
      bands: options.bands ?? [],
      series: [{ label: "Time", value: (_, value) => (value === null ? "–" : clockTime.format(value * 1000)) }, ...series],
    },
    [[], ...series.map(() => [])],
    element,
  );
}

export class PoolCharts {
  newestSeconds = 0;
  #times = [];
  #columns = new Map();
  #votes = [];
  #plots = [];
  #maxReplicas = 1;
  #forecast = null;

  constructor() {
    // A vote that has never had a value has no line, and no colour of one.
    this.colourOfVote = (name) => (this.#votes.includes(name) ? colour(this.#votes.indexOf(name)) : style("--quiet"));
    this.onResize = new ResizeObserver(() => this.#fit());
  }

  // Takes the rows that came since the last time, and the newest forecast (null: there is none).
  add(series, maxReplicas, forecast) {
    this.#maxReplicas = maxReplicas;
    const hadForecast = this.#forecast !== null;
    this.#forecast = forecast ?? null;
    const rows = series.timesSeconds.length;
    if (rows > 0 && series.timesSeconds[0] <= this.newestSeconds) return; // asked for twice at a time
    for (const name of new Set([...this.#columns.keys(), ...Object.keys(series.columns)])) {
      const known = this.#columns.get(name) ?? new Array(this.#times.length).fill(null);
      known.push(...(series.columns[name] ?? new Array(rows).fill(null)));
      this.#columns.set(name, known.slice(-KEPT_ROWS));
    }
    this.#times = [...this.#times, ...series.timesSeconds].slice(-KEPT_ROWS);
    this.newestSeconds = this.#times.at(-1) ?? 0;
    const votes = [...this.#columns.keys()].filter((name) => name.startsWith(VOTE)).map((name) => name.slice(VOTE.length));
    if (this.#plots.length === 0 || votes.join() !== this.#votes.join() || hadForecast !== (this.#forecast !== null)) {
      this.#votes = votes;
      this.#build();
    }
    for (const { plot, names } of this.#plots) {
      const ahead = names.includes(BAND[0]) ? this.#timesAhead() : [];
      plot.setData([[...this.#times, ...ahead], ...names.map((name) => this.#withAhead(name, ahead))]);
      if (plot.cursor.idx === null || plot.cursor.idx === undefined) plot.setLegend({ idx: this.#times.length - 1 });
    }
  }

  remove() {
    this.onResize.disconnect();
    for (const { plot } of this.#plots) plot.destroy();
    this.#plots = [];
  }

  // The bins that are still to come: a point where each begins and one where it ends, as the band has steps.
  #timesAhead() {
    const { originSeconds, binSeconds, quantiles } = this.#forecast;
    const edges = quantiles.flatMap((_, bin) => [originSeconds + bin * binSeconds, originSeconds + (bin + 1) * binSeconds - 1]);
    return edges.filter((edge) => edge > this.newestSeconds);
  }

  #withAhead(name, ahead) {
    const end = BAND.indexOf(name);
    if (end < 0) return [...this.#column(name), ...ahead.map(() => null)];
    const { originSeconds, binSeconds, quantiles } = this.#forecast;
    const expected = (second) => quantiles[Math.floor((second - originSeconds) / binSeconds)]?.at(end - 1) ?? null;
    return [...this.#times.map((second) => (second === this.newestSeconds ? expected(second) : null)), ...ahead.map(expected)];
  }

  #column(name) {
    if (name === "tokensPerSecond") return this.#sum("promptTokensPerSecond", "generationTokensPerSecond");
    if (name === "supply") return this.#sum("ready", "starting");
    return this.#columns.get(name) ?? new Array(this.#times.length).fill(null);
  }

  #sum(first, second) {
    const [left, right] = [this.#column(first), this.#column(second)];
    return left.map((value, row) => (value === null || right[row] === null ? null : value + right[row]));
  }

  #build() {
    this.remove();
    const waiting = { scale: "waiting", side: 1, grid: { show: false }, ...WHOLE };
    const levels = this.#forecast?.levels ?? [];
    const band = this.#forecast === null ? [] : [
      line("Arrived in 5 min", 2, { ...SPARSE, width: 1.25 }),
      line(`Expected (${100 * levels.at(-1)} %)`, 3, { ...SPARSE, width: 1 }),
      line(`${100 * levels[0]} %`, 3, { ...SPARSE, dash: [4, 3] }),
    ];
    this.#add("load", ["tokensPerSecond", "waitingRequests", ...(band.length > 0 ? ["arrivingTokensPerSecond", ...BAND] : [])], [
      line("Tokens per second", 0, { fill: style("--accent-soft") }),
      line("Waiting requests", 1, { scale: "waiting" }),
      ...band,
    ], {
      scales: { waiting: { range: fromZero } },
      axes: [axis(waiting)],
      bands: band.length > 0 ? [{ series: [4, 5], fill: style("--accent-soft") }] : [],
    });
    this.#add("replicas", ["supply", "ready", "desired"], [
      line("Ready and starting", 4, { paths: stepped, width: 1.25, fill: style("--grid") }),
      line("Ready", 2, { paths: stepped }),
      line("Wanted", 0, { paths: stepped, dash: [6, 4], width: 2 }),
    ], { y: WHOLE });
    this.#add("voteLines", this.#votes.map((name) => VOTE + name).concat("desired"), [
      ...this.#votes.map((name, index) => line(name, index)),
      line("Wanted", 0, { paths: stepped, dash: [6, 4], stroke: style("--text") }),
    ], { y: WHOLE, scales: { y: { range: (_, low, high) => [0, Math.max(1, Math.min(1.08 * (high ?? 1), VOTES_SHOWN * this.#maxReplicas))] } } });
    const hasShare = this.#columns.has("metShare");
    document.getElementById("latencyCaption").textContent = hasShare
      ? "time to first token, share of requests within the objectives"
      : "time to first token";
    const share = { scale: "share", side: 1, grid: { show: false }, values: (_, splits) => splits.map((split) => `${Math.round(100 * split)} %`) };
    this.#add("latency", hasShare ? ["timeToFirstTokenP99Seconds", "metShare"] : ["timeToFirstTokenP99Seconds"], [
      line("p99, seconds", 1),
      ...(hasShare ? [line("Within the objectives", 2, { scale: "share", value: (_, value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`) })] : []),
    ], { scales: { y: { range: fromZeroSmall }, ...(hasShare && { share: { range: [0, 1.05] } }) }, axes: hasShare ? [axis(share)] : [] });
    for (const { element } of this.#plots) this.onResize.observe(element);
  }

  #add(id, names, series, options) {
    const element = document.getElementById(id);
    element.replaceChildren();
    this.#plots.push({ element, names, plot: draw(element, series, options) });
  }

  #fit() {
    for (const { element, plot } of this.#plots) {
      if (plot.width !== element.clientWidth && element.clientWidth > 0) plot.setSize({ width: element.clientWidth, height: HEIGHT });
    }
  }
}
