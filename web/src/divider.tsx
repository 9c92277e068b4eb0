// SPDX-License-Identifier: MIT
// The line between two panes: it is dragged, or moved by arrow keys. Widths stand in the address.
import { useRef } from "preact/hooks";
import { widthsOf } from "./state";
import { change, current } from "./store";

const least = [160, 120, 60];
const step = 16;

interface Props {
  which: 0 | 1 | 2; // of widthsOf
  label: string;
  measured: (divider: HTMLElement) => number; // how wide the pane is now
  isReverse?: boolean; // the pane is at its right
}

export function Divider({ which, label, measured, isReverse }: Props) {
  const drag = useRef<{ x: number; width: number } | undefined>(undefined);
  const sign = isReverse ? -1 : 1;
  const set = (width: number): void => {
    const widths = widthsOf(current());
    widths[which] = Math.max(least[which]!, Math.min(Math.round(width), innerWidth - 300));
    change({ widths: widths.join() }, true);
  };
  return (
    <div
      class="divider"
      role="separator"
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={widthsOf(current())[which]}
      tabIndex={0}
      title="drag, or use the arrow keys; a double click takes it back"
      onPointerDown={(e) => {
        e.preventDefault();
        e.currentTarget.setPointerCapture(e.pointerId);
        drag.current = { x: e.clientX, width: measured(e.currentTarget) };
      }}
      onPointerMove={(e) => drag.current && set(drag.current.width + sign * (e.clientX - drag.current.x))}
      onPointerUp={() => {
        drag.current = undefined;
      }}
      onDblClick={() => {
        const widths = widthsOf(current());
        widths[which] = 0;
        change({ widths: widths.some(Boolean) ? widths.join() : "" }, true);
      }}
      onKeyDown={(e) => {
        const by = { ArrowLeft: -step, ArrowRight: step }[e.key];
        if (!by) return;
        e.preventDefault();
        e.stopPropagation();
        set(measured(e.currentTarget) + sign * by);
      }}
    />
  );
}
