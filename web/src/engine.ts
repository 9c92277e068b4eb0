// SPDX-License-Identifier: MIT
// Whoever answers the questions of the page: weir behind a server, or weir as WebAssembly in this file.
// A question is text (docs/format/view-answers.md); what is wrong with it comes back as a sentence.

import { FileEngine } from "./file_engine";

export interface Engine {
  ask(question: string): Promise<ArrayBuffer>;
}

export class Refused extends Error {}

// Questions are asked of the folder that the page is in, whose name is the token.
class ServerEngine implements Engine {
  async ask(question: string): Promise<ArrayBuffer> {
    let response: Response;
    try {
      response = await fetch(`q/${question}`, { cache: "no-store" });
    } catch {
      throw new Refused("weir does not answer any more: 'weir view' has ended");
    }
    const body = await response.arrayBuffer();
    if (!response.ok) throw new Refused(new TextDecoder().decode(body).trim());
    return body;
  }
}

export async function openEngine(): Promise<Engine> {
  return document.getElementById("weir-trace") ? FileEngine.open() : new ServerEngine();
}

export type Keys = Record<string, string | number | undefined>;

// "tree?order=cum&metric=cpu"; keys without a value are left out.
export function question(kind: string, keys: Keys): string {
  const parts: string[] = [];
  for (const [key, value] of Object.entries(keys))
    if (value !== undefined && value !== "") parts.push(`${key}=${encodeURIComponent(value)}`);
  return parts.length ? `${kind}?${parts.join("&")}` : kind;
}
