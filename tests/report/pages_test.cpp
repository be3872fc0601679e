// Every page in a real browser: no complaints, the values of the data, all controls under the Tab key, nothing wider than the
// screen, every word of a chart inside it, colours that stay apart for colour-blind readers.
#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "report/browser.h"
#include "report/page.h"
#include "report/report_fixture.h"
#include "report/serve.h"

namespace fairway {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kAnalysis = R"({"weights":"0",
  "svd":{"roles":[{"role":"Q","matrices":1,"utilization":0.726,"utilization95":0.5,"stable_rank":59.7,"condition":null}]},
  "heads":{"tokens":64,"context":32,"classes":{"published":{"induction":1,"previous":1,"positional":0,"other":0},
    "classical":{"induction":0,"previous":1,"positional":0,"other":1}},
    "heads":[{"layer":0,"pass":0,"head":0,"class":"previous","class_classical":"previous","previous":0.625,"first":0.1,
              "self":0.1,"entropy":1,"induction":0.001,"induction_classical":0.002},
             {"layer":0,"pass":0,"head":1,"class":"induction","class_classical":"other","previous":0.05,"first":0.1,
              "self":0.1,"entropy":1,"induction":0.03125,"induction_classical":0.002}]},
  "calibration":{"tokens":64,"context":32,"expected_error":0.0126,"accuracy":0.5446,"confidence":0.55,"entropy":1.847,
    "bins":[{"low":0,"high":0.5,"count":40,"confidence":0.3,"accuracy":0.25},{"low":0.5,"high":1,"count":0,"confidence":0,"accuracy":0}]},
  "lens":{"tokens":64,"context":32,"layers":[{"layer":0,"pass":0,"loss":5.5,"bpb":3,"accuracy":0.1},{"layer":1,"pass":0,"loss":4.25,"bpb":2,"accuracy":0.2}]},
  "sensitivity":{"tokens":64,"context":32,"bits":[6,5],"loss":4.25,"bpb":2,"matrices":[{"name":"bank.qo[0]","role":"Q","layer":0,"weights":16,
    "change":{"int6":{"nats":1e-5,"nats_error":1e-6,"bpb":0.0000078125},"int5":{"nats":1e-4,"nats_error":1e-6,"bpb":0.000078125}}}],
    "layers":[],"all":{"int6":{"nats":1e-5,"bpb":7e-6},"int5":{"nats":1e-4,"bpb":7e-5}}},
  "quant":{"column_gain":0.39,"all":[{"step":0.5,"bits":3.1,"error":0.01,"bound":2.4},{"step":1,"bits":2.2,"error":0.04,"bound":1.5}],
    "tensors":[{"name":"bank.down[3]","rows":4,"cols":4,"column_gain":0.596,"points":[]}]}})";

class Pages : public Report {
 protected:
  void SetUp() override {
    if (!Browser::installed()) GTEST_SKIP() << "chromium is not installed";
    browser_ = std::make_unique<Browser>();
  }

  void show(const ordered_json& data, int width = 1200, bool dark = false) {
    const std::string page = report_page(data);
    EXPECT_LT(page.size(), 1'500'000U);
    write("page.html", page);
    browser_->open("file://" + (folder_ / "page.html").string(), width, dark);
  }
  ordered_json data_of(const std::vector<fs::path>& folders) const { return report_data(folders, false); }

  json value(const std::string& expression) { return browser_->evaluate(expression); }
  std::string text(const std::string& selector) {
    return value("document.querySelector('" + selector + "').textContent").get<std::string>();
  }
  double number(const std::string& selector, const std::string& attribute) {
    return value("Number(document.querySelector('" + selector + "').getAttribute('" + attribute + "'))").get<double>();
  }

  void expect_no_complaints() const {
    for (const std::string& complaint : browser_->complaints()) ADD_FAILURE() << complaint;
  }

  // What can be focused is reached by Tab alone, and has a name.
  void expect_keyboard_reaches_all() {
    constexpr const char* kAll =
        "[...document.querySelectorAll('a[href],button,select,input,summary,[tabindex=\"0\"]')]"
        ".filter(e => e.checkVisibility() && !(e.closest('details:not([open])') && e.tagName !== 'SUMMARY'))";
    const int count = value(std::string(kAll) + ".length").get<int>();
    ASSERT_GT(count, 0);
    value("document.addEventListener('focusin', e => { e.target.reached = true; }); document.activeElement.blur()");
    browser_->press("Tab", count + 2);
    EXPECT_EQ(value(std::string(kAll) + ".filter(e => !e.reached).map(e => e.outerHTML.slice(0, 90))"), json::array());
    EXPECT_EQ(value(std::string(kAll) +
                    ".filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length) || "
                    "e.closest('section'))).length"),
              0);
  }

  // Of a page as it is shown: the page itself does not scroll sideways, and charts cut no word.
  void expect_all_fits() {
    EXPECT_LE(value("document.documentElement.scrollWidth - innerWidth").get<int>(), 0);
    EXPECT_EQ(
        value(
            "[...document.querySelectorAll('svg text')].filter(t => t.checkVisibility()).filter(t => { const s = "
            "t.closest('svg').getBoundingClientRect(), b = t.getBoundingClientRect(); return b.left < s.left - 2 || b.right > "
            "s.right + 2 || b.top < s.top - 3 || b.bottom > s.bottom + 3; }).map(t => t.closest('svg').id + ': ' + "
            "t.textContent)"),
        json::array());
  }

  void expect_usable(const ordered_json& data) {
    for (const auto& [width, dark] : {std::pair{1200, false}, {390, false}, {390, true}}) {
      SCOPED_TRACE(std::to_string(width) + (dark ? " dark" : ""));
      show(data, width, dark);
      expect_all_fits();
    }
    show(data);
    expect_keyboard_reaches_all();
    expect_no_complaints();
  }

  std::unique_ptr<Browser> browser_;
};

constexpr const char* kScores = R"([{"mode":"plain","val_loss":6.75,"val_bpb":3.5,"tokens":10,"seconds":1,"legal":true},
    {"mode":"slot-published","val_loss":6,"val_bpb":3.1,"tokens":10,"seconds":1,"legal":false}])";
constexpr const char* kAudit =
    R"({"legal":false,"tests":[{"id":"T1","property":"every target is scored exactly once","held":true,
    "detail":"10 targets"},{"id":"T6","property":"single pass","held":false,"detail":"two passes"}]})";

TEST_F(Pages, ARunShowsItsScoreBudgetsAndAudit) {
  write("pack.json", R"({"artifact_bytes":600,"budget":800,"code_bytes":100,"submission_bytes":700,
    "ledger":[{"name":"weights: up","bytes":400},{"name":"header","bytes":200}],
    "tensors":[{"name":"bank.up[0]","bits":6,"loss":0.125},{"name":"bank.up[1]","bits":4,"loss":0.25}]})");
  write("score.json", kScores);
  write("audit.json", kAudit);
  write("analysis.json", kAnalysis);
  write("samples.json", R"([{"prompt":"The </pre>","text":"artifact","float":"weights","truth":"truth"}])");
  write("machine.json",
        R"({"cpu":"a CPU","isa":"avx2","threads":2,"peak_gflops":118.20567475,"memory_bytes":25276518400,"cuda":false})");
  const ordered_json data = data_of({folder_});
  expect_usable(data);
  EXPECT_DOUBLE_EQ(number("#score", "data-value"), 3.5);  // the best legal one
  EXPECT_DOUBLE_EQ(number("#meter_bytes", "aria-valuenow"), 600);
  EXPECT_DOUBLE_EQ(number("#meter_bytes", "aria-valuemax"), 800);
  EXPECT_DOUBLE_EQ(number("#meter_training", "aria-valuenow"), 300);
  EXPECT_NEAR(number("#loss [data-name=loss]", "data-last"), 8.0 - 0.001 * (kSteps - 1), 1e-6);
  EXPECT_EQ(number("#loss [data-name=loss]", "data-count"), 400);
  EXPECT_EQ(number("#ledger", "data-total"), 600);
  EXPECT_EQ(text("#audit tbody tr:nth-child(2)"), "single pass✗ failstwo passesT6");
  EXPECT_EQ(value("document.querySelector('[data-name=\"weights: up\"]').dataset.role"), "mlp");
  EXPECT_NE(value("document.querySelector('[data-name=\"bank.up[0]\"]').getAttribute('fill')"),
            value("document.querySelector('[data-name=\"bank.up[1]\"]').getAttribute('fill')"));
  EXPECT_EQ(value("[...document.querySelectorAll('#samples pre')].map(p => p.textContent)"),
            json({"truth", "weights", "artifact"}));
  EXPECT_NE(text("#machine").find("118 GFLOP/s"), std::string::npos);
  EXPECT_NE(text("#machine").find("23.5 GiB"), std::string::npos);
  for (const char* part : {"data-head=\"0.1\"", "data-error=\"0.0126\"", "data-bpb=\"0.000078125\"", "data-value=\"0.726\""})
    EXPECT_TRUE(value(std::string("document.documentElement.outerHTML.includes('") + part + "')").get<bool>()) << part;
}

TEST_F(Pages, CurvesTellValuesToPointerAndArrowsOnAnyAxis) {
  const ordered_json data = data_of({folder_});
  show(data);
  value("document.getElementById('loss').focus()");
  browser_->press("ArrowRight", 3);
  EXPECT_EQ(value("Number(document.querySelector('.tip [data-series=loss]').dataset.y)"), data["runs"][0]["curve"]["loss"][2]);
  browser_->press("End");
  EXPECT_NE(text(".tip b").find("1,200"), std::string::npos);
  browser_->press("Escape");
  EXPECT_EQ(value("document.querySelector('.tip').hidden"), true);
  value("document.getElementById('axis').focus()");
  browser_->press("ArrowDown", 2);  // tokens, seconds
  EXPECT_EQ(value("document.getElementById('axis').value"), "seconds");
  value("document.getElementById('loss').focus()");
  browser_->press("End");
  EXPECT_NE(text(".tip b").find("300"), std::string::npos);
  value("document.getElementById('smooth').focus()");
  const json before = value("document.querySelectorAll('#loss .faint').length");
  browser_->press("ArrowRight", 5);
  EXPECT_EQ(before, 0);
  EXPECT_EQ(value("document.querySelectorAll('#loss .faint').length"), 1);
  expect_no_complaints();
}

TEST_F(Pages, RunsSideBySideHaveNamesDifferencesAndIntervals) {
  const fs::path a = copy_run(folder_ / "a" / "run"), b = copy_run(folder_ / "b" / "run", {"optim.matrix.lr=0.0125"});
  write_at(a / "score.json", R"({"mode":"sliding","val_loss":6,"val_bpb":2.875,"tokens":10,"seconds":1,"legal":true})");
  write_at(b / "score.json", R"({"mode":"sliding","val_loss":5,"val_bpb":2.625,"tokens":10,"seconds":1,"legal":true})");
  for (const fs::path& run : {a, b})
    write_at(run / "samples.json", R"([{"prompt":"The ","text":")" + run.parent_path().filename().string() + R"("}])");
  ordered_json data = data_of({a, b});
  data["comparison"] = {
      {"baseline", "a/run"},
      {"deltas",
       {{{"name", "b/run"}, {"by", "documents"}, {"delta_bpb", -0.25}, {"low", -0.375}, {"high", -0.125}, {"p", 0.01}},
        {{"name", "b/run"}, {"by", "seeds"}, {"refused", "one seed"}}}}};
  expect_usable(data);
  EXPECT_EQ(text("h1"), "Fairway: a/run and b/run");
  EXPECT_EQ(text("#differences tbody"), "optim.matrix.lr0.020.0125");
  EXPECT_NE(text("#side tbody tr:nth-child(2)").find("−0.25000"), std::string::npos);
  EXPECT_DOUBLE_EQ(number("#compared [data-name=\"b/run\"]", "data-value"), 2.625);
  EXPECT_DOUBLE_EQ(number("#deltas circle", "data-value"), -0.25);
  EXPECT_DOUBLE_EQ(number("#deltas circle", "data-low"), -0.375);
  EXPECT_EQ(value("document.querySelectorAll('#loss .told').length"), 4);  // a loss and a validation each
  EXPECT_EQ(value("document.querySelectorAll('#samples .texts > div').length"), 2);
  EXPECT_NE(value("document.querySelectorAll('#loss path.series')[0].getAttribute('stroke')"),
            value("document.querySelectorAll('#loss path.series')[1].getAttribute('stroke')"));
}

TEST_F(Pages, SeedsHaveTheirMeanAndSpread) {
  const fs::path seeds = folder_ / "seeds";
  for (const int seed : {1, 2}) copy_run(seeds / ("seed" + std::to_string(seed)), {"train.seed=" + std::to_string(seed)});
  write_at(seeds / "seeds.json", R"({"ledger":"seeds","seeds":[1,2],"runs":{"seed1":{"seed":1,"score_bpb":3.25,"steps":9},
    "seed2":{"seed":2,"score_bpb":3.5,"steps":9}},"statistics":{"mean":{"score_bpb":3.375},"sd":{"score_bpb":0.125}}})");
  ordered_json data = data_of({seeds});
  data["seeds"]["low"] = 3.0;
  data["seeds"]["high"] = 3.75;
  expect_usable(data);
  EXPECT_DOUBLE_EQ(number("#score", "data-value"), 3.375);
  EXPECT_EQ(value("[...document.querySelectorAll('#seed_scores circle')].map(c => Number(c.dataset.value))"),
            json({3.25, 3.5, 3.375}));
  EXPECT_EQ(value("document.querySelectorAll('#seeds tbody tr').length"), 2);
  EXPECT_EQ(text("#seeds tfoot tr").find("mean3.37500"), 0U);
}

TEST_F(Pages, ASweepIsSortedByScore) {
  const fs::path sweep = folder_ / "sweep";
  ordered_json results = ordered_json::object();
  for (const auto& [trial, lr, score] : {std::tuple{1, "0.01", 3.5}, {2, "0.02", 3.25}, {3, "0.04", 4.0}}) {
    const std::string name = "rung1/trial" + std::to_string(trial);
    copy_run(sweep / name);
    results[name] = {
        {"set", {std::string("optim.matrix.lr=") + lr}}, {"share", 1}, {"metric", "val_bpb"}, {"score", score}, {"steps", 9}};
  }
  results["rung1/trial4"] = {{"set", {"optim.matrix.lr=9"}}, {"share", 1}, {"failed", "not a number"}};
  write_at(sweep / "sweep.json", ordered_json({{"ledger", "sweep"}, {"results", results}}).dump());
  const ordered_json data = data_of({sweep});
  expect_usable(data);
  const std::string first = "[...document.querySelectorAll('#trials tbody tr')].map(r => r.cells[0].textContent)";
  EXPECT_EQ(value(first), json({"trial2", "trial1", "trial3", "trial4: not a number"}));
  EXPECT_EQ(value("Math.min(...[...document.querySelectorAll('#parallel path')].map(p => Number(p.dataset.score)))"), 3.25);
  value("document.querySelectorAll('#trials button.sort')[3].focus()");  // by learning rate
  browser_->press("Enter");
  EXPECT_EQ(value(first), json({"trial1", "trial2", "trial3", "trial4: not a number"}));
  EXPECT_EQ(value("document.querySelectorAll('#trials th')[3].getAttribute('aria-sort')"), "ascending");
}

// Answers requests beside the test.
class LiveServer {
 public:
  explicit LiveServer(const std::function<std::optional<ordered_json>(const std::string&)>& data)
      : pages_{.page = [data](const std::string& query) { return formed(data(query), report_page); },
               .data = [data](const std::string& query) { return formed(data(query), json_text); }} {
    std::promise<uint16_t> ready;
    thread_ = std::thread([this, &ready] {
      serve_report(
          0, pages_, [&](uint16_t port) { ready.set_value(port); }, [this] { return stop_.load(); });
    });
    address = "http://127.0.0.1:" + std::to_string(ready.get_future().get()) + "/";
  }
  ~LiveServer() {
    stop_ = true;
    thread_.join();
  }
  std::string address;

 private:
  static std::optional<std::string> formed(const std::optional<ordered_json>& data, std::string (*form)(const ordered_json&)) {
    return data ? std::optional(form(*data)) : std::nullopt;
  }
  LivePages pages_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_F(Pages, ALivePageFollowsTheRunItsPhaseAndItsTimeLeft) {
  write("recipe.toml", to_toml(smoke_with({"train.steps=2400"})));
  write("run.json", R"({"ledger":"run","plan":{"phases":[{"name":"train"},{"name":"pack"}],"budget_bytes":1000},"phases":{}})");
  write(".lock", std::to_string(getpid()));
  const LiveServer server([&](const std::string&) { return std::optional(report_data(std::vector<fs::path>{folder_}, true)); });
  browser_->open(server.address);
  EXPECT_EQ(text("#phase"), "train");
  EXPECT_EQ(text("#fraction"), "50 %");
  EXPECT_DOUBLE_EQ(number("#left", "data-seconds"), 300);  // 1,200 steps of 250 ms
  EXPECT_EQ(text("#left"), "about 5 min 0 s of training left");
  EXPECT_DOUBLE_EQ(number("#meter_steps", "aria-valuemax"), 2400);
  EXPECT_DOUBLE_EQ(number("#forecast", "data-value"), 1000);
  value("document.getElementById('smooth').focus()");
  write("metrics.jsonl", R"({"step":1201,"loss":2.5})"
                         "\n");
  EXPECT_TRUE(browser_->waits_for("document.body.dataset.updates >= 1"));
  EXPECT_DOUBLE_EQ(number("#loss [data-name=loss]", "data-last"), 2.5);
  EXPECT_EQ(value("document.activeElement.id"), "smooth") << "an update leaves the reader where he is";
  write("run.json",
        R"({"ledger":"run","plan":{"phases":[{"name":"train"},{"name":"pack"}]},"phases":{"train":{"seconds":1}}})");
  EXPECT_TRUE(browser_->waits_for("document.getElementById('phase').textContent === 'pack'"));
  expect_all_fits();
  expect_no_complaints();
}

TEST_F(Pages, AFolderOfRunsWaitsForTheFirstAndListsAll) {
  const fs::path folder = folder_ / "runs";
  fs::create_directories(folder);
  const LiveServer server([&](const std::string& query) { return folder_data(folder, query); });
  browser_->open(server.address);
  EXPECT_NE(text("#waiting").find("No run lies in runs yet"), std::string::npos);
  copy_run(folder / "first one");
  copy_run(folder / "deep" / "b&c");
  EXPECT_TRUE(browser_->waits_for("document.querySelectorAll('#runs tbody tr').length === 2"));
  EXPECT_EQ(value("[...document.querySelectorAll('#runs a')].map(a => a.textContent)"), json({"deep/b&c", "first one"}));
  expect_keyboard_reaches_all();
  for (const char* box : {"choose-first one", "choose-deep/b&c"}) {
    value(std::string("document.getElementById('") + box + "').focus()");
    browser_->press(" ");
  }
  value("document.getElementById('compare').focus()");
  browser_->press("Enter");
  EXPECT_TRUE(browser_->waits_for("document.querySelectorAll('#side tbody tr').length === 2"));
  browser_->open(server.address + "?run=deep%2Fb%26c");
  EXPECT_EQ(text("h1"), "Fairway: b&c");
  expect_no_complaints();
  for (const char* outside : {"?run=..%2F", "?run=%2Fetc", "?run=deep"}) {
    browser_->open(server.address + outside);
    EXPECT_EQ(text("body"), "no such run\n") << outside;
  }
}

// Distances of colours as CIELAB has them, after the matrices of Machado, Oliveira and Fernandes (2009) for the three kinds of
// colour blindness. Dashes tell runs apart as well.
constexpr const char* kLeastDistance = R"js((names => {
  const probe = document.body.appendChild(document.createElement('i'));
  const rgb = name => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number); };
  const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const times = (m, v) => m.map(r => r.reduce((s, x, i) => s + x * v[i], 0));
  const kinds = [[[1,0,0],[0,1,0],[0,0,1]], [[0.152286,1.052583,-0.204868],[0.114503,0.786281,0.099216],[-0.003882,-0.048116,1.051998]],
    [[0.367322,0.860646,-0.227968],[0.280085,0.672501,0.047413],[-0.01182,0.04294,0.968881]], [[1.255528,-0.076749,-0.178779],[-0.078411,0.930809,0.147602],[0.004733,0.691367,0.3039]]];
  const lab = c => { const f = t => t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
    const [x, y, z] = times([[0.4124,0.3576,0.1805],[0.2126,0.7152,0.0722],[0.0193,0.1192,0.9505]], c).map((v, i) => f(Math.max(0, v) / [0.9505, 1, 1.089][i]));
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]; };
  let least = Infinity;
  for (const kind of kinds) { const all = names.map(n => lab(times(kind, rgb(n).map(linear))));
    all.forEach((a, i) => all.slice(0, i).forEach(b => { least = Math.min(least, Math.hypot(...a.map((v, k) => v - b[k]))); })); }
  probe.remove();
  return least; }))js";
constexpr const char* kContrast = R"js((names => {
  const probe = document.body.appendChild(document.createElement('i'));
  const light = name => { probe.style.color = `var(--${name})`; const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = name => { const [a, b] = [light(name), light('card')].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };
  const least = Math.min(...names.map(ratio)); probe.remove(); return least; }))js";

TEST_F(Pages, ColoursStayApartForEveryEye) {
  for (const bool dark : {false, true}) {
    SCOPED_TRACE(dark ? "dark" : "light");
    show(data_of({folder_}), 1200, dark);
    EXPECT_GT(value(std::string(kLeastDistance) + "(['run0', 'run1', 'run2', 'run3'])").get<double>(), 10);
    EXPECT_GT(
        value(std::string(kLeastDistance) + "(['role-embedding', 'role-attention', 'role-mlp', 'role-other', 'role-format'])")
            .get<double>(),
        10);
    EXPECT_GT(
        value(std::string(kContrast) + "(['run0','run1','run2','run3','run4','run5','run6','run7','focus'])").get<double>(), 3);
    EXPECT_GT(value(std::string(kContrast) + "(['fg', 'muted', 'bad'])").get<double>(), 4.5);
  }
}

}  // namespace
}  // namespace fairway
