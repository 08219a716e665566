/**
 * Where a conversation stands on the screen: it follows its end while a person is there, holds still while they read
 * elsewhere, and says when they come near the first or the last row that is there.
 */

/** Nearer to the end than this, in pixels, the conversation follows what arrives. */
const NEAR_PX = 80;
/** What a person reads: a stored row has the same blocks as the running turn that it takes the place of. */
const BLOCKS = 'p, li, pre, h1, h2, h3, h4, h5, h6, tr, summary, .bubble-text';
/** What is ahead of the screen is asked for at this distance from it, in heights of the screen. */
const AHEAD = 1.5;

/**
 * @param scroll the element that scrolls
 * @param content its rows, as children in order
 * @param onNear called with `start` or `end` while that is near; often
 * @param onFollow called with whether the end is followed, when that changes
 */
export function createScroller({ scroll, content, onNear, onFollow }) {
  let following = true;
  let lastTop = 0;
  /** What is read, `{node, top}`, with its place on the screen when one last scrolled; null while the end is followed. */
  let anchor = null;
  /** The end that is reached is not the end of the conversation: there is nothing to follow. */
  let away = false;

  const distance = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight;
  const toEnd = () => {
    scroll.scrollTop = scroll.scrollHeight;
    lastTop = scroll.scrollTop;
  };

  function setFollowing(next) {
    if (next === following) return;
    following = next;
    note();
    onFollow(following);
  }

  function look() {
    const ahead = scroll.clientHeight * AHEAD;
    if (scroll.scrollTop < ahead) onNear('start');
    if (away && distance() < ahead) onNear('end');
  }

  scroll.addEventListener(
    'scroll',
    () => {
      const top = scroll.scrollTop;
      // What arrives moves the end away; only a person who scrolls back leaves it.
      const isBack = top < lastTop - 1;
      if (!away && distance() < NEAR_PX) setFollowing(true);
      else if (isBack) setFollowing(false);
      // What has grown since is not yet put right when it is the answer to a scroll of our own.
      if (top !== lastTop) note();
      look();
    },
    { passive: true },
  );
  // Pictures that arrive and boxes that unfold must not push the end out of sight, nor what is read.
  const hold = () => {
    if (following) toEnd();
    // A browser that anchors by itself has scrolled already.
    else if (anchor?.node.isConnected && scroll.scrollTop === lastTop) moveBack(anchor);
    note();
  };
  new ResizeObserver(hold).observe(content);
  new ResizeObserver(hold).observe(scroll);

  const topOf = (node) => node.getBoundingClientRect().top;

  /** The first row that can be seen. */
  function firstInSight() {
    const top = topOf(scroll);
    const rows = content.children;
    let low = 0;
    let high = rows.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].getBoundingClientRect().bottom > top) high = middle;
      else low = middle + 1;
    }
    return rows[low] ?? null;
  }

  /** Remembers where what is read stands. */
  function note() {
    lastTop = scroll.scrollTop;
    anchor = null;
    const top = topOf(scroll);
    for (let node = following ? null : firstInSight(); node; ) {
      anchor = { node, top: topOf(node) };
      const isBlock = node.matches(BLOCKS);
      node = isBlock ? null : [...node.children].find((child) => child.getBoundingClientRect().bottom > top);
    }
  }

  /** Scrolls so that something stands where it stood. */
  function moveBack({ node, top }) {
    const moved = topOf(node) - top;
    if (Math.abs(moved) >= 1) scroll.scrollTop += moved;
  }

  /** The blocks on the screen, each with its place and, so that its like is found when it is gone, its number among those of its text. */
  function blocksInSight() {
    const { top, bottom } = scroll.getBoundingClientRect();
    const count = new Map();
    const found = [];
    for (const node of content.querySelectorAll(BLOCKS)) {
      const text = node.textContent;
      const number = count.get(text) ?? 0;
      count.set(text, number + 1);
      const box = node.getBoundingClientRect();
      if (box.height > 0 && box.bottom > top && box.top < bottom) found.push({ node, top: box.top, text, number });
    }
    return found;
  }

  /** Gives rows the height that they have: one that was never in sight has that of a row in general. */
  function layOut(rows) {
    for (const row of rows) row.style.contentVisibility = 'visible';
    const leave = () => {
      for (const row of rows) row.style.contentVisibility = '';
    };
    requestAnimationFrame(() => requestAnimationFrame(leave));
  }

  /** What stands there now in place of the first of some blocks that has its like. */
  function likeOf(blocks) {
    const all = [...content.querySelectorAll(BLOCKS)];
    for (const { node, top, text, number } of blocks) {
      const like = node.isConnected ? node : all.filter((one) => one.textContent === text)[number];
      if (like) return { node: like, top };
    }
    return null;
  }

  return {
    isFollowing: () => following,
    /** Another conversation comes, and its end is followed. Nothing is laid out for one that is gone. */
    begin() {
      away = false;
      anchor = null;
      lastTop = 0;
      if (following) return;
      following = true;
      onFollow(true);
    },
    /** Goes to the end and stays there. */
    follow() {
      setFollowing(true);
      toEnd();
    },
    /** Stays where it is, whatever arrives. */
    hold: () => setFollowing(false),
    /** Whether there are rows behind the last one. */
    setAway(next) {
      away = next;
      if (away) setFollowing(false);
    },
    /** Changes the rows while what is read stays in its place. */
    keep(change) {
      if (!following) hold();
      const before = anchor;
      // The row that one reads in may be taken away for its like.
      const blocks = before?.node.closest('.live') ? blocksInSight() : [];
      const rows = new Set(content.children);
      change();
      if (blocks.length > 0) layOut([...content.children].filter((row) => !rows.has(row)));
      const now = before?.node.isConnected ? before : likeOf(blocks);
      if (following) toEnd();
      // A browser that anchors by itself has moved already; then this is nothing.
      else if (now) moveBack(now);
      note();
    },
    look,
  };
}
