// The login: the token comes from the form, or from the part of the address after #, which browsers do not send.

export function startLogin() {
  const form = document.querySelector("form[data-login]");
  if (form instanceof HTMLFormElement) {
    const useAddress = () => {
      const given = new URLSearchParams(location.hash.slice(1)).get("token");
      if (!given) return;
      history.replaceState(null, "", location.pathname + location.search);
      login(form, given);
    };
    useAddress();
    // A browser that shows this page already does not load it again for another part after #.
    window.addEventListener("hashchange", useAddress);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      login(form, String(new FormData(form).get("token")));
    });
  }
  document.querySelector("[data-logout]")?.addEventListener("click", async () => {
    // The page must not be read again between the end of the session and the next page.
    document.body.removeAttribute("data-live");
    document.dispatchEvent(new Event("outlast:logout"));
    await fetch(`${document.body.dataset.base}/logout`, { method: "POST" });
    location.href = `${document.body.dataset.base}/login`;
  });
}

/** @param {HTMLFormElement} form @param {string} token */
async function login(form, token) {
  const base = document.body.dataset.base;
  const error = form.querySelector(".error");
  try {
    const body = JSON.stringify({ token: token.trim() });
    const answer = await fetch(`${base}/login`, { method: "POST", headers: { "content-type": "application/json" }, body });
    if (answer.ok) location.href = location.pathname.endsWith("/login") ? `${base}/instances` : location.href;
    else error.textContent = "The server does not know this token.";
  } catch {
    error.textContent = "The server does not answer.";
  }
}
