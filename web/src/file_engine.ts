// SPDX-License-Identifier: MIT
// The engine of a page that is a file: weir itself as WebAssembly, which reads the trace that is in the page.
import { type Engine, Refused } from "./engine";

interface Weir {
  memory: WebAssembly.Memory;
  _initialize(): void;
  weir_alloc(bytes: number): number;
  weir_open(at: number, bytes: number, name: number): number;
  weir_open_before(at: number, bytes: number, name: number): number;
  weir_ask(at: number, bytes: number): number;
  weir_answer(): number;
  weir_answer_bytes(): number;
}

async function unpack(id: string): Promise<Uint8Array<ArrayBuffer>> {
  const text = atob(document.getElementById(id)!.textContent!.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// There is no system: no files, no environment. The C library asks for both when it begins.
function noSystem(name: string): () => number {
  const badFile = 8;
  const unsupported = 52;
  if (name === "proc_exit")
    return () => {
      throw new Error("the engine has ended");
    };
  if (name.startsWith("environ")) return () => 0;
  return () => (name === "fd_prestat_get" ? badFile : unsupported);
}

interface SourceAnswer {
  functions: { name: string }[];
}

export class FileEngine implements Engine {
  private constructor(
    private readonly weir: Weir,
    private readonly sources: SourceAnswer[],
  ) {}

  static async open(): Promise<Engine> {
    const hasTwo = document.getElementById("weir-before") !== null;
    const [trace, before, code] = await Promise.all([unpack("weir-trace"), hasTwo ? unpack("weir-before") : undefined, unpack("weir-engine")]);
    const module = await WebAssembly.compile(code);
    const imports: WebAssembly.Imports = {};
    for (const wanted of WebAssembly.Module.imports(module)) (imports[wanted.module] ??= {})[wanted.name] = noSystem(wanted.name);
    const instance = await WebAssembly.instantiate(module, imports);
    const weir = instance.exports as unknown as Weir;
    weir._initialize();
    const sources = JSON.parse(document.getElementById("weir-sources")!.textContent!) as SourceAnswer[];
    const engine = new FileEngine(weir, sources);
    const named = (name: string): number => engine.put(new TextEncoder().encode(`${name}\0`));
    if (before && weir.weir_open_before(engine.put(before), before.length, named("the older trace in this page"))) throw new Refused(engine.text());
    if (weir.weir_open(engine.put(trace), trace.length, named(before ? "the newer trace in this page" : "the trace in this page"))) throw new Refused(engine.text());
    return engine;
  }

  async ask(question: string): Promise<ArrayBuffer> {
    if (question.startsWith("source?")) return this.source(new URLSearchParams(question.slice(7)));
    if (question.startsWith("export/")) throw new Refused("This file has no exports: they need weir. 'weir export' makes them from the trace, 'weir view' from a selection.");
    const bytes = new TextEncoder().encode(question);
    const refused = this.weir.weir_ask(this.put(bytes), bytes.length);
    if (refused) throw new Refused(this.text());
    return this.answer();
  }

  private put(bytes: Uint8Array): number {
    const at = this.weir.weir_alloc(bytes.length);
    new Uint8Array(this.weir.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }

  private answer(): ArrayBuffer {
    const at = this.weir.weir_answer();
    return this.weir.memory.buffer.slice(at, at + this.weir.weir_answer_bytes()) as ArrayBuffer;
  }

  private text(): string {
    return new TextDecoder().decode(this.answer());
  }

  // Lines were looked up when the page was made, for the whole trace (of two, the newer one) and its first metric.
  private source(keys: URLSearchParams): ArrayBuffer {
    const name = keys.get("function");
    const isWhole = ["metric", "thread", "from", "to", "transform", "trace"].every((key) => !keys.get(key));
    if (!isWhole) throw new Refused("This file has source lines for the whole of its trace (of two, the newer one) alone. 'weir view' has them for every selection.");
    const found = this.sources.find((s) => s.functions.some((f) => f.name === name));
    if (!found) throw new Refused(`This file has no source lines of '${name}': it has those of the 100 hottest functions whose source was there. 'weir view' has all.`);
    return new TextEncoder().encode(JSON.stringify(found)).buffer as ArrayBuffer;
  }
}
