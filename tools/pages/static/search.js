// The results of a search: pages whose title has all words come first, no page comes twice, and each has an excerpt.
// Excerpts come from a script, since a page that is opened from a file may not fetch others.
const stem = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}_.]/gu, "").replace(/(?<=\p{L}{3})(ies|es|s|ing|ed)$/u, "");
const wordsOf = (text) => text.split(/[\s/:,()]+/).map(stem).filter(Boolean);

// The share of the words of a search that a title has, and how much else it has: larger is better.
function score(title, query) {
  const titles = wordsOf(title);
  const found = query.filter((word) => titles.some((each) => each === word || each.startsWith(word)));
  return query.length ? found.length / query.length - 0.01 * (titles.length - found.length) : 0;
}

// The results, best first, one for each page; results of equal score stay in their order.
function ranked(results, text) {
  const query = wordsOf(text);
  const pages = new Map();
  results.forEach((result, place) => {
    const entry = { ...result, place, score: score(result.title, query) };
    const known = pages.get(result.page);
    if (!known || entry.score > known.score) pages.set(result.page, { ...entry, place: known ? known.place : place });
  });
  return [...pages.values()].sort((a, b) => b.score - a.score || a.place - b.place);
}

function arrange(list, text, root, excerpts) {
  const items = [...list.querySelectorAll(":scope > li")];
  const results = items.map((item) => {
    const link = item.querySelector("a");
    return { item, title: link.textContent, page: new URL(link.href).pathname };
  });
  const base = new URL(root, location.href).pathname;
  const kept = ranked(results, text);
  for (const { item, page } of kept) {
    const excerpt = excerpts[page.slice(base.length)];
    if (excerpt && !item.querySelector("p.excerpt")) {
      const paragraph = document.createElement("p");
      paragraph.className = "excerpt";
      paragraph.textContent = excerpt;
      item.append(paragraph);
    }
  }
  list.replaceChildren(...kept.map(({ item }) => item));
}

if (typeof document !== "undefined")
  document.addEventListener("DOMContentLoaded", () => {
    const place = document.getElementById("search-results");
    const text = new URLSearchParams(location.search).get("q");
    if (!place || !text) return;
    const root = document.documentElement.dataset.content_root ?? "";
    const script = document.createElement("script");
    script.src = `${root}_static/excerpts.js`;
    script.addEventListener("load", () => {
      let timer = 0;
      const watch = () => observer.observe(place, { childList: true, subtree: true });
      const update = () => {
        const list = place.querySelector("ul.search");
        if (!list) return;
        observer.disconnect();
        arrange(list, text, root || "./", EXCERPTS);
        watch();
      };
      const observer = new MutationObserver(() => {
        clearTimeout(timer);
        timer = setTimeout(update, 150);
      });
      watch();
      update();
    });
    document.head.append(script);
  });
else module.exports = { ranked, score, wordsOf };
