// The sidebar of the reference and of the optimizers: all names of the module, with a field that filters them.
document.addEventListener("DOMContentLoaded", () => {
  const nav = document.querySelector("nav.names");
  if (!nav) return;
  const root = document.documentElement.dataset.content_root ?? "";
  const script = document.createElement("script");
  script.src = `${root}_static/page-names.js`;
  script.addEventListener("load", () => {
    const folder = nav.dataset.folder;
    const names = PAGE_NAMES[folder] ?? [];
    const here = location.pathname.split("/").pop();
    const list = nav.querySelector("ul");
    for (const [name, page] of names) {
      const link = document.createElement("a");
      link.href = `${root}${folder}/${page}.html`;
      link.textContent = name;
      if (`${page}.html` === here) link.setAttribute("aria-current", "page");
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    const field = nav.querySelector("input");
    field.hidden = names.length < 25;
    field.addEventListener("input", () => {
      const typed = field.value.toLowerCase();
      for (const item of list.children) item.hidden = !item.textContent.toLowerCase().includes(typed);
    });
    list.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
  });
  document.head.append(script);
});
