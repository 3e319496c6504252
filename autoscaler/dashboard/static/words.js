// Everything on the page that is not a chart. Text is only ever set as text, never as markup.

const utc = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

export function utcTime(seconds) {
  const parts = Object.fromEntries(utc.formatToParts(seconds * 1000).map((part) => [part.type, part.value]));
  return `${parts.year}-${parts.month}-${parts.day} ${parts.hour}:${parts.minute}:${parts.second}`;
}

function put(id, text) {
  const element = document.getElementById(id);
  if (element.textContent !== text) element.textContent = text;
}

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

export function showHeader(fleet) {
  document.title = fleet.title;
  document.getElementById("badge").hidden = !fleet.isSimulated;
  put("about", fleet.about);
  const speed = fleet.secondsPerSecond === 1 ? "" : `, ${fleet.secondsPerSecond} times as fast as real time`;
  put("clock", fleet.nowSeconds ? `${utcTime(fleet.nowSeconds)} UTC${speed}` : "");
}

export function showNotice(text) {
  document.getElementById("notice").hidden = !text;
  put("notice", text || "");
}

export function showAnswer(pool, colourOfVote) {
  const number = (value) => (value === null ? "–" : String(value));
  put("desired", number(pool.desired));
  put("ready", number(pool.ready));
  put("starting", pool.stuck ? `${pool.starting} + ${pool.stuck} stuck` : number(pool.starting));
  put("bounds", `${pool.minReplicas} to ${pool.maxReplicas}`);
  put("mode", pool.mode);
  put("sentence", pool.decision?.message ?? "Nothing has been decided yet.");
  put("outcome", pool.outcome ?? "");
  document.getElementById("votes").replaceChildren(...(pool.decision ? voteRows(pool.decision, colourOfVote) : []));
  document.getElementById("steps").replaceChildren(...(pool.decision?.steps ?? []).map(stepRow));
}

function voteRows(decision, colourOfVote) {
  const largest = Math.max(1, decision.desired, ...decision.votes.map((vote) => vote.replicas ?? 0));
  return decision.votes.map((vote) => {
    const isSilent = vote.replicas === null;
    const row = make("li", isSilent ? "silent" : vote.name === decision.binding ? "binding" : "");
    row.title = vote.message;
    const swatch = make("span", "swatch");
    swatch.style.background = colourOfVote(vote.name);
    const track = make("span", "track");
    const bar = make("span", "bar");
    bar.style.background = colourOfVote(vote.name);
    bar.style.width = `${(100 * (vote.replicas ?? 0)) / largest}%`;
    track.append(bar);
    row.append(swatch, make("span", "", vote.name), track, make("span", "value", isSilent ? "silent" : vote.replicas.toFixed(2)));
    return row;
  });
}

function stepRow(step) {
  const row = make("li", step.before === step.after ? "unchanged" : "changed");
  const move = step.before === step.after ? String(step.after) : `${step.before} → ${step.after}`;
  row.append(make("span", "", step.name), make("span", "move", move), make("span", "", step.message || step.reason));
  return row;
}

export function showChanges(changes) {
  document.getElementById("noChanges").hidden = changes.length > 0;
  document.getElementById("changes").replaceChildren(
    ...changes.map((change) => {
      const row = make("tr");
      const direction = change.to > change.from ? "up" : "down";
      row.append(
        make("td", "", utcTime(change.atSeconds)),
        make("td", `number ${direction}`, `${change.from} → ${change.to}`),
        make("td", "", change.reason),
        make("td", "why-text", change.message),
        make("td", "", change.outcome),
      );
      return row;
    }),
  );
}
