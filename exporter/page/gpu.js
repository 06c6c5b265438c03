// One GPU as a row of the table, with a second row of details that its button opens.

import { Chart } from "./chart.js";
import { html, list, put, svg } from "./dom.js";

const PARTS = ["working", "stalled", "hollow", "unexplained", "idle"];
const REASONS = {
  not_supported: "not supported by this GPU or driver",
  not_configured: "switched off",
  not_permitted: "not permitted",
  locked: "another profiler holds it",
  paused: "profiling is paused",
  out_of_range: "the value was out of range",
  not_a_number: "the value was not a number",
  contradicted: "another counter of the GPU contradicts the zero",
  stale: "the value cannot be trusted",
  no_data: "no data",
  not_reported: "not reported",
  not_present: "the GPU is missing",
  per_instance: "see its instances",
  no_answer: "no answer",
};
const PROFILING = {
  ok: "profiling ok",
  unsupported: "no profiling",
  not_permitted: "profiling not permitted",
  locked_by_other: "profiling locked by another",
  paused: "profiling paused",
  stuck_at_zero: "profiling stuck at zero",
  frozen: "profiling frozen",
  stale: "profiling stale",
};
const UNITS = {
  power: "W",
  power_limit: "W",
  temperature: "°C",
  sm_clock: "Hz",
  memory_used: "B",
  memory_total: "B",
  processes: "",
  pcie_transmit: "B/s",
  pcie_receive: "B/s",
  nvlink_transmit: "B/s",
  nvlink_receive: "B/s",
};
const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

const words = (name) => name.replaceAll("_", " ");
const because = (reason) => REASONS[reason] ?? words(reason ?? "no data");

/** A ratio for people; what is small but not 0 does not read as 0. */
export function percent(ratio) {
  if (ratio === null || ratio === undefined) return "–";
  if (ratio === 0) return "0 %";
  if (ratio < 0.001) return "<0.1 %";
  return `${(100 * ratio).toFixed(1)} %`;
}

function amount(name, value) {
  if (!(name in UNITS)) return percent(value);
  const [scale, prefix] = PREFIXES.find(([scale]) => value >= scale) ?? [1, ""];
  const scaled = value / scale;
  return `${Number.isInteger(scaled) ? scaled : scaled.toPrecision(3)} ${prefix}${UNITS[name]}`;
}

export function title(gpu) {
  return gpu.gpu_instance === null ? `GPU ${gpu.index}` : `GPU ${gpu.index} / ${gpu.gpu_instance}`;
}

function holder({ namespace, pod, container, job_id, user, account, sharing }) {
  const who = job_id ? [`job ${job_id}`, user, account] : [[namespace, pod, container].filter(Boolean).join("/"), user];
  return `${who.filter(Boolean).join(", ")}${sharing === "exclusive" || sharing === "mig" ? "" : ` (${words(sharing)})`}`;
}

/** The row of a GPU of which the page knows nothing now: every value absent. */
export function silenced(gpu) {
  const names = ["parts", "utilization", "divergence", "limiter", "state", "state_reason", "throttled", "holders"];
  const values = Object.fromEntries(Object.keys(gpu.values).map((name) => [name, null]));
  const absent = Object.fromEntries([...Object.keys(values), ...names].map((name) => [name, "no_answer"]));
  return { ...gpu, ...Object.fromEntries(names.map((name) => [name, null])), values, absent };
}

export class Row {
  constructor(number) {
    this.button = html("button", { type: "button", "aria-expanded": "false", "aria-controls": `details-${number}` });
    this.model = html("small");
    this.claim = this.#number("Driver claims");
    this.sm = this.#number("SM active");
    this.bar = svg("svg", { "aria-hidden": "true" });
    this.rects = PARTS.map((part) => this.bar.appendChild(svg("rect", { height: "100%", fill: `url(#${part})` })));
    this.shares = html("ul");
    this.chart = new Chart();
    [this.state, this.holder, this.data] = ["State", "Holder", "Data"].map((label) => this.#cell(label));
    const parts = this.#cell("Where the time went", "parts");
    parts.append(this.bar, this.shares);
    const chart = this.#cell("Last 10 minutes");
    chart.append(this.chart.node);
    this.node = html("tr", { role: "row" }, html("th", { role: "rowheader", scope: "row" }, this.button, this.model));
    this.node.append(this.claim, this.sm, parts, chart, this.state, this.holder, this.data);
    this.facts = html("dl");
    const cell = html("td", { role: "cell", colspan: "8" }, this.facts);
    this.details = html("tr", { role: "row", class: "details", id: `details-${number}`, hidden: "" }, cell);
    this.button.addEventListener("click", () => {
      this.details.hidden = !this.details.hidden;
      this.button.setAttribute("aria-expanded", String(!this.details.hidden));
    });
  }

  #cell(label, kind = "") {
    return html("td", { role: "cell", "data-label": label, ...(kind && { class: kind }) });
  }

  #number(label) {
    const cell = this.#cell(label);
    cell.append(html("span", { class: "number" }), html("small"));
    return cell;
  }

  update(gpu, bins) {
    put(this.button, title(gpu));
    put(this.model, [gpu.model, gpu.mig_profile].filter(Boolean).join(", ") || "model unknown");
    this.node.classList.toggle("gone", !gpu.present);
    this.#claim(gpu);
    this.#say(this.sm, percent(gpu.values.sm), gpu.values.sm === null ? because(gpu.absent.sm) : "");
    this.#parts(gpu);
    this.chart.update(bins, percent);
    this.#texts(this.state, gpu.state === null ? ["–", because(gpu.absent.state)] : this.#state(gpu));
    this.#texts(this.holder, this.#holders(gpu));
    this.#texts(this.data, this.#quality(gpu));
    list(this.facts, this.#facts(gpu), ([name, text]) => html("div", {}, html("dt", {}, name), html("dd", {}, text)));
  }

  #claim(gpu) {
    const stands = gpu.claim === "graphics_engine" ? gpu.values.graphics_engine : null;
    const shown = gpu.values.busy ?? stands;
    const note = shown === null ? because(gpu.absent.busy) : gpu.values.busy === null ? "graphics engine, in its place" : "";
    this.#say(this.claim, percent(shown), note);
  }

  #say(cell, text, note) {
    put(cell.firstChild, text);
    put(cell.lastChild, note);
  }

  /** The first text as it is, the others small below it. */
  #texts(cell, texts) {
    list(cell, texts.filter(Boolean), (text) => (text === texts[0] ? html("span", {}, text) : html("small", {}, text)));
  }

  #parts(gpu) {
    let from = 0;
    PARTS.forEach((part, i) => {
      const share = gpu.parts?.[part] ?? 0;
      this.rects[i].setAttribute("x", `${(100 * from).toFixed(2)}%`);
      this.rects[i].setAttribute("width", `${(100 * share).toFixed(2)}%`);
      from += share;
    });
    const told = gpu.parts === null ? [] : PARTS.filter((part) => part in gpu.parts);
    const texts = told.map((part) => `${part} ${percent(gpu.parts[part])}`);
    list(this.shares, texts.length ? texts : [`– ${because(gpu.absent.parts)}`], (text) => html("li", {}, text));
  }

  #state({ state, state_reason, throttled }) {
    return [words(state), state_reason, throttled?.length ? `throttled: ${throttled.map(words).join(", ")}` : ""];
  }

  #holders(gpu) {
    if (gpu.holders === null) return ["–", because(gpu.absent.holders)];
    return gpu.holders.length ? gpu.holders.map(holder) : ["nobody"];
  }

  #quality(gpu) {
    if (!gpu.present) return ["gone", "seen earlier, no longer listed"];
    const refused = gpu.quality.rejected.reduce((sum, each) => sum + each.count, 0);
    return [
      PROFILING[gpu.quality.profiling] ?? words(gpu.quality.profiling),
      ...this.#missing(gpu),
      refused ? `${refused} ${refused === 1 ? "value" : "values"} rejected` : "",
    ];
  }

  /** The fields that were to come and did not, by reason; all are in the details. */
  #missing(gpu) {
    const byReason = new Map();
    for (const name of Object.keys(gpu.values)) {
      const reason = gpu.absent[name];
      if (reason && reason !== "not_reported") byReason.set(reason, [...(byReason.get(reason) ?? []), words(name)]);
    }
    return [...byReason].map(([reason, names]) => `${names.length > 3 ? `${names.length} fields` : names.join(", ")}: ${because(reason)}`);
  }

  #facts(gpu) {
    const { quality } = gpu;
    const facts = [["UUID", gpu.uuid], ["PCI address", gpu.pci_bus_id], ["driver", gpu.driver_version], ["source", quality.source]];
    facts.push(["limiter", gpu.limiter ?? `– ${because(gpu.absent.limiter)}`]);
    facts.push(["claim in excess of SM active", gpu.divergence === null ? `– ${because(gpu.absent.divergence)}` : percent(gpu.divergence)]);
    for (const [name, value] of Object.entries(gpu.values)) {
      facts.push([words(name), value === null ? `– ${because(gpu.absent[name])}` : amount(name, value)]);
    }
    for (const { field, reason, count } of quality.rejected) facts.push([`${words(field)} rejected`, `${count}: ${words(reason)}`]);
    return facts.filter(([, text]) => text);
  }
}
