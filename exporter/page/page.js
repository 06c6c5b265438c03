// Polls the document once a second and shows it. No number here is made up or carried on: absent stays absent.

import { History } from "./chart.js";
import { html, list, put } from "./dom.js";
import { Row, silenced, title } from "./gpu.js";

const EVERY = 1000; // milliseconds
const PATIENCE = 5000; // milliseconds for one answer
const FAILURES = 3; // answers missed until the numbers on the page are taken away

const find = (id) => document.getElementById(id);
const clock = (timestamp) => new Date(timestamp * 1000).toLocaleTimeString([], { hour12: false });

class Page {
  #history = new History();
  #rows = new Map(); // id -> Row
  #made = 0;
  #last = null; // the last document
  #received = 0; // performance.now() of it
  #failures = 0;
  #timer = null;
  #polling = false;

  start() {
    put(find("host"), location.host);
    document.title = `${location.host}: Honest GPU Exporter`;
    document.addEventListener("visibilitychange", () => this.#poll());
    this.#poll();
  }

  async #poll() {
    clearTimeout(this.#timer);
    if (document.hidden || this.#polling) return; // a tab that nobody sees asks nothing
    this.#polling = true;
    try {
      this.#show(await this.#ask());
    } catch (error) {
      this.#failed(error);
    }
    this.#polling = false;
    this.#timer = setTimeout(() => this.#poll(), EVERY);
  }

  async #ask() {
    const url = new URL(`api/v1/snapshot?since=${this.#history.since}`, location.href);
    url.username = url.password = ""; // fetch refuses a URL that has them; the browser sends them by itself
    const answer = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    if (answer.ok) return answer.json();
    const told = answer.headers.get("content-type")?.startsWith("application/json") ? (await answer.json()).error : "";
    throw new Error(told || `the exporter answers ${answer.status} ${answer.statusText}`);
  }

  #show(made) {
    if (made.version !== 1) throw new Error(`the exporter speaks version ${made.version} of the document: reload this page`);
    this.#failures = 0;
    this.#last = made;
    this.#received = performance.now();
    this.#history.add(made.history);
    this.#update(made, made.gpus, made.warnings);
  }

  #failed(error) {
    this.#failures += 1;
    const why = error.name === "TimeoutError" ? "no answer in time" : error.message;
    if (this.#last === null) {
      list(find("health"), [why], (text) => html("p", {}, text));
      return;
    }
    const silent = this.#failures >= FAILURES;
    const then = clock(this.#last.timestamp);
    const says = `The exporter does not answer (${why}). ${silent ? "No data since" : "These are the numbers from"} ${then}.`;
    this.#update(this.#last, silent ? this.#last.gpus.map(silenced) : this.#last.gpus, [says]);
  }

  #update(made, gpus, warnings) {
    list(find("health"), warnings, (text) => html("p", {}, text));
    find("gpus").classList.toggle("old", made.stale || this.#failures > 0);
    const sources = made.sources.map((source) => `${source.name} ${source.up ? "up" : "down"}`).join(", ");
    put(find("node"), `${made.present_gpus} of ${made.expected_gpus} GPUs · source ${sources || "none"} · numbers from ${clock(made.timestamp)}`);
    this.#problems(made);
    this.#table(gpus, made.timestamp + (this.#failures ? (performance.now() - this.#received) / 1000 : 0));
  }

  #problems({ problems, gpus }) {
    const name = (id) => gpus.filter((gpu) => gpu.id === id).map((gpu) => `${title(gpu)}: `).join("") || (id ? `${id}: ` : "");
    const texts = problems.map((each) => `${name(each.gpu)}${each.what}: ${each.why}${each.remedy ? ` → ${each.remedy}` : ""}`);
    find("problems").hidden = !texts.length;
    list(find("problems").querySelector("ul"), texts, (text) => html("li", {}, text));
  }

  #table(gpus, now) {
    const body = find("gpus").tBodies[0];
    const ids = gpus.map((gpu) => gpu.id);
    if (ids.join() !== [...this.#rows.keys()].join()) {
      const rows = ids.map((id) => [id, this.#rows.get(id) ?? new Row(this.#made++)]);
      this.#rows = new Map(rows);
      body.replaceChildren(...rows.flatMap(([, row]) => [row.node, row.details]));
    }
    for (const gpu of gpus) this.#rows.get(gpu.id).update(gpu, this.#history.bins(gpu.id, now));
  }
}

new Page().start();
