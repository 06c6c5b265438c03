// The last ten minutes of each GPU: what the document's history adds up to, and a small chart of it.

import { svg } from "./dom.js";

const SECONDS = 600;
const BIN = 5; // seconds a bin
const BINS = SECONDS / BIN;
const WIDTH = 240, HEIGHT = 48; // pixels; patterns would be distorted by scaling
const STACK = ["working", "stalled", "unexplained", "hollow", "idle"]; // from below; they add up to 1, a gap is empty

export class History {
  since = 0; // Unix seconds: what is asked for next
  #points = new Map(); // id -> [{end, seconds, claimed, sm, ...}]

  /** Takes in the document's `history`. */
  add({ timestamps, gpus }) {
    if (!timestamps.length) return;
    if (timestamps[0] <= this.since) this.#points.clear(); // the exporter sent all of it again
    this.since = timestamps.at(-1);
    for (const [id, columns] of Object.entries(gpus)) {
      const points = this.#points.get(id) ?? [];
      this.#points.set(id, points);
      timestamps.forEach((end, i) => {
        if (columns.seconds[i] === null) return;
        points.push(Object.fromEntries([["end", end], ...Object.entries(columns).map(([name, values]) => [name, values[i]])]));
      });
    }
    for (const [id, points] of this.#points) {
      const old = points.findIndex((point) => point.end > this.since - SECONDS);
      if (old < 0) this.#points.delete(id);
      else points.splice(0, old);
    }
  }

  /** Means of the bins of five seconds up to `now`; a bin without data is missing. */
  bins(id, now) {
    const last = Math.ceil(now / BIN);
    const bins = new Map();
    for (const point of this.#points.get(id) ?? []) {
      const begin = point.end - point.seconds;
      for (let n = Math.floor(begin / BIN); n < point.end / BIN; n++) {
        const place = n - (last - BINS);
        const weight = Math.min(point.end, (n + 1) * BIN) - Math.max(begin, n * BIN);
        if (place < 0 || place >= BINS || weight <= 0) continue;
        const bin = bins.get(place) ?? {};
        bins.set(place, bin);
        for (const name of ["claimed", "sm", ...STACK]) {
          if (point[name] === null) continue;
          const sum = (bin[name] ??= { total: 0, weight: 0 });
          sum.total += point[name] * weight;
          sum.weight += weight;
        }
      }
    }
    return bins;
  }
}

const value = (bin, name) => (bin[name] ? bin[name].total / bin[name].weight : null);

/** The mean of a column over all bins, and the seconds that it is of; null without any. */
function mean(bins, name) {
  let total = 0, seconds = 0;
  for (const bin of bins.values()) {
    total += bin[name]?.total ?? 0;
    seconds += bin[name]?.weight ?? 0;
  }
  return seconds ? { ratio: total / seconds, seconds } : null;
}

export class Chart {
  constructor() {
    this.node = svg("svg", { class: "chart", role: "img", width: WIDTH, height: HEIGHT });
    this.bands = STACK.map((part) => this.node.appendChild(svg("path", { fill: `url(#${part})`, "shape-rendering": "crispEdges" })));
    this.line = this.node.appendChild(svg("path", { class: "claimed" }));
  }

  /** Draws; `say` makes a ratio readable. */
  update(bins, say) {
    const step = WIDTH / BINS;
    const y = (ratio) => (HEIGHT - ratio * HEIGHT).toFixed(1);
    const inside = (ratio) => (HEIGHT - 1 - ratio * (HEIGHT - 2)).toFixed(1); // a line on the border would be half a line
    const paths = STACK.map(() => "");
    let line = "", before = -2;
    for (const [place, bin] of [...bins].sort((a, b) => a[0] - b[0])) {
      let floor = 0;
      STACK.forEach((part, i) => {
        const share = value(bin, part) ?? 0;
        if (share > 0) paths[i] += `M${place * step} ${y(floor)}V${y(floor + share)}h${step}V${y(floor)}z`;
        floor += share;
      });
      const claimed = value(bin, "claimed");
      if (claimed === null) continue;
      line += `${place === before + 1 ? "L" : "M"}${place * step} ${inside(claimed)}h${step}`;
      before = place;
    }
    this.bands.forEach((band, i) => band.setAttribute("d", paths[i]));
    this.line.setAttribute("d", line);
    const told = [["driver claims", "claimed"], ["SM active", "sm"], ["working", "working"], ["hollow", "hollow"]]
      .map(([words, name]) => [words, mean(bins, name)])
      .filter(([, found]) => found);
    const minutes = (Math.max(...told.map(([, found]) => found.seconds)) / 60).toFixed(1);
    const means = told.map(([words, found]) => `${words} ${say(found.ratio)}`).join(", ");
    const label = means ? `Means over ${minutes} of the last 10 minutes: ${means}` : "No data in the last 10 minutes";
    if (this.node.getAttribute("aria-label") !== label) this.node.setAttribute("aria-label", label);
  }
}
