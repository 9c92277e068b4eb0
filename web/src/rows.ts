// SPDX-License-Identifier: MIT
// A list of many rows of equal height: only those that are seen, and some around them, are in the page.
import { type RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const extraRows = 10;

interface Rows {
  list: RefObject<HTMLDivElement | null>; // what scrolls
  first: number;
  last: number; // one behind it
  onScroll: () => void;
  show: (row: number) => void; // scrolls to it unless it is seen
}

export function useRows(n: number, rowPixels: number): Rows {
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const list = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const element = list.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return {
    list,
    first: Math.max(0, Math.min(n, Math.floor(top / rowPixels)) - extraRows),
    last: Math.min(n, Math.ceil((top + height) / rowPixels) + extraRows),
    onScroll: () => setTop(list.current!.scrollTop),
    show: (row) => {
      const y = row * rowPixels;
      if (list.current && (y < top || y > top + height - 2 * rowPixels)) list.current.scrollTop = y - height / 2;
    },
  };
}
