//! The dashboard in a real browser: every page, every button that changes something, and what became of it in the API.
//!
//! Chromium and its driver are installed with apt where they are missing and that is possible; where it is not, the
//! test says so and passes, unless WINDFALL_BROWSER=required. Pictures of all pages are left in the folder that
//! WINDFALL_SCREENSHOTS names, else below the target directory. Those of `docs/images` are of real functions:
//!
//! ```text
//! windfall up --shadow histogram --learn       # prints the address of the dashboard, its token in it
//! WINDFALL_DASHBOARD=ADDRESS WINDFALL_SCREENSHOTS=$PWD/docs/images \
//!   cargo test -p windfall-daemon --test browser -- --ignored
//! ```

#![expect(clippy::print_stderr, reason = "a test says what it installs, and why it tested nothing")]

mod chromium;
mod site;

use std::path::PathBuf;

use chromium::{Browser, Driver};
use serde_json::Value;
use site::Site;

const PAGES: [(&str, &str); 5] = [
    ("cluster", "Cluster"),
    ("functions", "Functions"),
    ("tape", "Decision tape"),
    ("advice", "Recommendations"),
    ("learning", "Learning"),
];

#[test]
fn every_page_works_in_a_browser() {
    let driver = match Driver::start() {
        Ok(driver) => driver,
        Err(why) => {
            let is_required = std::env::var("WINDFALL_BROWSER").is_ok_and(|it| it == "required");
            assert!(!is_required, "no browser: {why}");
            eprintln!("not tested: no browser, and none can be installed: {why}");
            return;
        }
    };
    let site = Site::open();
    let browser = driver.browser();
    let visit = Visit { browser: &browser, site: &site };
    visit.open();
    visit.numbers_change();
    visit.nothing_jumps();
    visit.the_cursor_moves();
    visit.a_link_leads_to_its_view();
    visit.a_function_is_paused();
    visit.a_recommendation_is_applied();
    visit.a_call_is_replayed();
    visit.a_policy_takes_over_and_is_rolled_back();
    visit.the_kill_switch_works();
    pictures(&browser, &site.busiest());
    assert_eq!(browser.run("return window.windfallProblems"), Value::Array(Vec::new()));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "takes pictures of a manager that runs already, whose address WINDFALL_DASHBOARD has"]
fn pictures_of_a_running_manager() {
    // Everything that is ignored is run by the long check, where no manager runs.
    let Ok(address) = std::env::var("WINDFALL_DASHBOARD") else { return };
    let driver = Driver::start().expect("a browser");
    let browser = driver.browser();
    browser.open(&address);
    go(&browser, "functions", "Functions");
    let first = "return document.querySelector('tbody a.name')?.textContent";
    let busiest = browser.until("a function", first);
    pictures(&browser, busiest.as_str().expect("a name"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Opens a page of the dashboard.
fn go(browser: &Browser<'_>, page: &str, title: &str) {
    browser.run(&format!("location.hash = '#/{page}'"));
    let script = format!("return document.querySelector('h1')?.textContent === '{title}'");
    browser.until(title, &script);
}

/// Every page, wide and narrow, light and dark; nothing is wider than the window.
fn pictures(browser: &Browser<'_>, busiest: &str) {
    let folder = std::env::var_os("WINDFALL_SCREENSHOTS").map(PathBuf::from);
    let folder =
        folder.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dashboard"));
    std::fs::create_dir_all(&folder).expect("a folder for pictures");
    let function = (format!("function/{busiest}"), busiest);
    let pages = PAGES.iter().map(|(page, title)| ((*page).to_owned(), *title));
    for (page, title) in pages.chain([function]) {
        for (width, is_dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
            browser.show_as(width, is_dark);
            go(browser, &page, title);
            std::thread::sleep(std::time::Duration::from_millis(350));
            // Not compared with the window's own width: a phone shows a page that is too wide in a wider one.
            let wide = browser.run("return document.documentElement.scrollWidth").as_u64();
            assert!(wide <= Some(u64::from(width)), "{page} is {wide:?} pixels wide at {width}");
            let picture = browser.picture();
            let name = page.split('/').next().unwrap_or_default();
            let scheme = if is_dark { "dark" } else { "light" };
            let file = format!("dashboard-{name}-{width}-{scheme}.png");
            std::fs::write(folder.join(file), picture).expect("a picture is written");
        }
    }
    browser.show_as(1280, false);
}

/// One browser on one site.
struct Visit<'a> {
    browser: &'a Browser<'a>,
    site: &'a Site,
}

impl Visit<'_> {
    fn until(&self, what: &str, script: &str) -> Value {
        self.browser.until(what, script)
    }

    fn run(&self, script: &str) -> Value {
        self.browser.run(script)
    }

    fn go(&self, page: &str, title: &str) {
        go(self.browser, page, title);
    }

    fn open(&self) {
        self.browser.open(&self.site.url());
        self.until("the page", "return document.getElementById('what')?.textContent");
        let address = self.run("return location.href");
        let has_token = address.as_str().is_none_or(|address| address.contains("token"));
        assert!(!has_token, "the token stays in the address: {address}");
        for (page, title) in PAGES {
            self.go(page, title);
        }
    }

    fn numbers_change(&self) {
        self.go("cluster", "Cluster");
        let before = self.run("return document.getElementById('facts').textContent");
        let script = format!(
            "const now = document.getElementById('facts').textContent; return now !== {before} && now"
        );
        self.until("a change of the numbers", &script);
        let tile =
            "return [...document.querySelectorAll('.tile')].map((it) => it.textContent).join()";
        let before = self.run(tile);
        self.until("a change of the tiles", &format!("{tile} !== {before}"));
    }

    /// Live numbers change in their places: on no page does anything move while nobody touches it.
    fn nothing_jumps(&self) {
        self.run(
            "window.shifted = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries())\
             if (!entry.hadRecentInput) window.shifted += entry.value; }).observe({ type: 'layout-shift' })",
        );
        let busiest = self.site.busiest();
        let function = (format!("function/{busiest}"), busiest.as_str());
        // The tape is left out: it grows at its top.
        let pages = PAGES.iter().filter(|(page, _)| *page != "tape");
        let pages = pages.map(|(page, title)| ((*page).to_owned(), *title));
        for (page, title) in pages.chain([function]) {
            self.go(&page, title);
            // Until the first answers are there, then through a refresh of the page.
            std::thread::sleep(std::time::Duration::from_secs(2));
            self.run("window.shifted = 0");
            std::thread::sleep(std::time::Duration::from_secs(4));
            let shifted = self.run("return window.shifted").as_f64().unwrap_or(0.0);
            assert!(shifted < 0.02, "{page} moves by {shifted} of the window");
        }
    }

    /// Filters and the moment are in the address, and an address brings them back.
    fn a_link_leads_to_its_view(&self) {
        self.go("functions", "Functions");
        self.run(
            "const box = document.querySelector('input[type=search]'); box.value = 'function-1';\
             box.dispatchEvent(new Event('input'))",
        );
        self.until(
            "the search is in the address",
            "return location.hash.includes('search=function-1')",
        );
        self.run("location.hash = '#/tape?kind=call&trips=true'");
        let chosen = "return document.querySelector('.head select')?.value === 'call' && document.getElementById('trips').checked";
        self.until("the filters of the address", chosen);
        let name = self.site.busiest();
        let at = self.site.status()["now"].as_f64().expect("a time") - 2.0;
        self.run(&format!("location.hash = '#/function/{name}?at={at:.1}'"));
        let moment = "return [...document.querySelectorAll('.note')].some((it) => it.textContent.startsWith('at the cursor'))";
        self.until("the moment of the address", moment);
        self.run("dispatchEvent(new KeyboardEvent('keydown', { key: 'f' }))");
        self.until("following again", "return !location.hash.includes('at=')");
    }

    fn a_policy_takes_over_and_is_rolled_back(&self) {
        self.go("learning", "Learning");
        let offer = "const policy = document.querySelector('select[aria-label=policy]');\
                     if (![...policy.options].some((it) => it.value === 'histogram')) return false;\
                     policy.value = 'histogram'; document.getElementById('force').checked = true;\
                     [...document.querySelectorAll('button')].find((it) => it.textContent === 'Offer').click(); return true";
        self.until("the list of policies", offer);
        self.site.until("it is in charge", || self.site.status()["policy"] == "histogram");
        self.run("document.getElementById('rollback').click()");
        self.site
            .until("the version before is back", || self.site.status()["policy"] == "windfall");
        let shown = "return [...document.querySelectorAll('tbody td')].some((it) => it.textContent.includes('ordered by a user'))";
        self.until("the reason is shown", shown);
    }

    fn the_cursor_moves(&self) {
        self.go("tape", "Decision tape");
        let step =
            "dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', shiftKey: false }))";
        self.run(&format!("for (let k = 0; k < 4; k += 1) {step}"));
        self.until("the cursor leaves the present", "return location.hash.includes('at=')");
        let shown = "return document.querySelector('.head .sub').textContent.startsWith('up to')";
        self.until("the tape up to the cursor", shown);
        let at = self.run("return Number(location.hash.match(/at=([0-9.]+)/)[1])");
        let (_, decisions) = self.site.get(&format!("/api/v1/decisions?until={at}&limit=1"));
        let newest = decisions["entries"][0]["id"].as_u64().expect("there are decisions");
        let first = "return document.querySelector('.tape .entry')?.id";
        // A moment before the cursor in the address is rounded, so the neighbour counts too.
        let shown = self.until("an entry", first);
        let shown: u64 = shown.as_str().and_then(|id| id[1..].parse().ok()).expect("a number");
        assert!(shown.abs_diff(newest) <= 40, "shown {shown}, in the API {newest}");
        self.run("dispatchEvent(new KeyboardEvent('keydown', { key: 'f' }))");
        let following =
            "return document.querySelector('#cursor-bar button').textContent === 'following'";
        self.until("following again", following);
    }

    fn a_function_is_paused(&self) {
        self.go("functions", "Functions");
        let press = "const row = document.querySelector('tbody tr'); const button = row?.querySelector('button');\
                     if (!button) return null; button.click(); return row.querySelector('a.name').textContent";
        let name = self.until("a row", press);
        let name = name.as_str().expect("a name").to_owned();
        self.site.until(&format!("{name} is paused"), || self.site.standing(&name) == "paused");
        let resume = format!(
            "const row = [...document.querySelectorAll('tbody tr')].find((it) => it.querySelector('a.name').textContent === '{name}');\
             const button = row?.querySelector('button'); if (button?.textContent !== 'Resume') return false; button.click(); return true"
        );
        self.until("the button to resume", &resume);
        self.site.until(&format!("{name} is managed"), || self.site.standing(&name) == "managed");
    }

    fn a_recommendation_is_applied(&self) {
        self.go("advice", "Recommendations");
        let press = "const row = [...document.querySelectorAll('tbody tr')].find((it) => it.querySelector('button.primary'));\
                     if (!row) return null; row.querySelector('button.primary').click(); return row.querySelector('a.name').textContent";
        let name = self.until("a recommendation", press);
        let name = name.as_str().expect("a name").to_owned();
        self.site.until(&format!("{name} is pinned"), || self.site.standing(&name) == "pinned");
        let back = "const button = [...document.querySelectorAll('tbody button')].find((it) => it.textContent === 'Take back');\
                    if (!button) return false; button.click(); return true";
        self.until("the button to take it back", back);
        self.site.until(&format!("{name} is managed"), || self.site.standing(&name) == "managed");
    }

    fn a_call_is_replayed(&self) {
        let name = self.site.busiest();
        self.go(&format!("function/{name}"), &name);
        let press = "const button = [...document.querySelectorAll('tbody button')].find((it) => it.textContent === 'Replay');\
                     if (!button) return null; button.click(); return button.closest('tr').children[1].textContent";
        let call = self.until("a call", press);
        let call: u64 = call.as_str().and_then(|id| id.parse().ok()).expect("a number");
        let text = "return [...document.querySelectorAll('div.soft')].map((it) => it.textContent).find((it) => it.startsWith('Replay of call'))";
        let shown = self.until("the answer of the replay", text);
        let ran = self.site.replay(&name, call);
        assert_eq!(ran["end"], "completed", "{ran}");
        assert!(shown.as_str().is_some_and(|text| text.contains("completed")), "{shown}");
        let press = "document.querySelector('input[aria-label=cores]').value = '0.5';\
                     const button = [...document.querySelectorAll('tbody button')].find((it) => it.textContent === 'at size');\
                     if (!button) return false; button.click(); return true";
        self.until("the button for another size", press);
        let shown = "return [...document.querySelectorAll('div.soft')].some((it) => it.textContent.includes(' at 0.50 cores'))";
        self.until("the answer at another size", shown);
    }

    fn the_kill_switch_works(&self) {
        self.run("document.getElementById('kill').click()");
        assert_eq!(self.site.get("/api/v1/status").1["killed"], false, "once is not enough");
        self.run("document.getElementById('kill').click()");
        self.site.until("the kill switch is on", || self.site.status()["killed"] == true);
        self.until("the banner", "return !document.getElementById('banner').hidden");
        let again = "return document.getElementById('kill').textContent === 'Manage again'";
        self.until("the button to go on", again);
        self.run("document.getElementById('kill').click()");
        self.site.until("the kill switch is off", || self.site.status()["killed"] == false);
        self.until("the banner goes", "return document.getElementById('banner').hidden");
    }
}
