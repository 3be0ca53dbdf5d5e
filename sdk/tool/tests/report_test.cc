// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

namespace json = boost::json;

bool is_of(const json::value& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  return type == "number" && value.is_number();
}

// Returns why a schema does not allow a value; empty if it does. Supports the keywords that the schemas in docs use.
std::string complaint(const json::value& value, const json::object& schema, const std::string& at) {
  if (const json::value* type = schema.if_contains("type")) {
    const json::array names = type->is_array() ? type->as_array() : json::array{*type};
    const auto fits = [&](const json::value& name) { return is_of(value, std::string_view(name.as_string())); };
    if (std::none_of(names.begin(), names.end(), fits)) return at + " is of another type";
  }
  if (const json::value* options = schema.if_contains("enum")) {
    const json::array& all = options->as_array();
    if (std::find(all.begin(), all.end(), value) == all.end()) return at + " has another value";
  }
  if (const json::value* items = schema.if_contains("items"); items != nullptr && value.is_array()) {
    for (size_t i = 0; i < value.as_array().size(); ++i) {
      const std::string place = at + "[" + std::to_string(i) + "]";
      if (const std::string bad = complaint(value.as_array()[i], items->as_object(), place); !bad.empty()) return bad;
    }
  }
  if (!value.is_object()) return {};
  if (const json::value* required = schema.if_contains("required"))
    for (const json::value& name : required->as_array())
      if (!value.as_object().contains(name.as_string())) return at + " lacks " + std::string(name.as_string());
  const json::value* properties = schema.if_contains("properties");
  for (const auto& [name, member] : value.as_object()) {
    const json::value* known = properties == nullptr ? nullptr : properties->as_object().if_contains(name);
    const std::string place = at + "." + std::string(name);
    if (known == nullptr && schema.contains("additionalProperties")) return place + " is not in the schema";
    if (known == nullptr) continue;
    if (const std::string bad = complaint(member, known->as_object(), place); !bad.empty()) return bad;
  }
  return {};
}

json::object schema() {
  return json::parse(contents("docs/conformance_report.schema.json")).as_object();
}

// Returns the command line that runs the interpreter behind a backend that is wrong for some operands.
std::string mutation(const std::string& name) {
  const std::string lib = build_dir() + "/lib/collet/";
  return "conform --no-fallback --backend " + lib +
         "test_backends/libcollet_backend_mutation.so --option mutant=" + name + " --option backend=" + lib +
         "backends/libcollet_backend_interpreter.so ";
}

// Returns the command line that runs the interpreter behind a mutant.
std::string mutant(const std::string& name, const std::string& more) {
  const std::string lib = build_dir() + "/lib/collet/";
  return "conform --no-fallback --backend " + lib +
         "test_backends/libcollet_backend_mutant.so --option mutant=" + name + " --option backend=" + lib +
         "backends/libcollet_backend_interpreter.so " + more;
}

TEST(Report, FollowsItsSchema) {
  ASSERT_FALSE(schema().empty());
  for (const std::string& line :
       {std::string("conform --backend interpreter --json - --filter 'tanh/f32/*' --filter 'contract/copy/*'"),
        mutant("one-element", "--json - --filter 'dot/f32/*'"), mutant("crash", "--json - --filter 'sort/f32/*'")}) {
    const Ran ran = collet(line);
    ASSERT_LE(ran.code, 1) << ran.err;
    EXPECT_EQ(complaint(json::parse(ran.out), schema(), "report"), "") << line;
  }
  // Checks that the test detects a report that violates the schema.
  json::value report = json::parse(collet("conform --backend interpreter --json - --filter 'tanh/f32/1/*'").out);
  report.as_object()["cases"].as_array()[0].as_object()["status"] = "fine";
  EXPECT_EQ(complaint(report, schema(), "report"), "report.cases[0].status has another value");
}

// Returns a program of a sum of integers, which SUM computes, and its requantization in TYPE.
std::string quantized_layer(std::string_view sum, std::string_view type) {
  constexpr std::string_view kSteps[] = {
      "ENTRY main {\n",
      "SUM\n",
      "real = TYPE[1,3,5] convert(sum)\nscale = TYPE[] constant(0.3)\nscales = TYPE[1,3,5] broadcast(scale), "
      "dimensions={}\n",
      "scaled = TYPE[1,3,5] multiply(real, scales)\nrounded = TYPE[1,3,5] round-nearest-even(scaled)\n",
      "low = TYPE[] constant(-128)\nhigh = TYPE[] constant(127)\nclamped = TYPE[1,3,5] clamp(low, rounded, high)\n",
      "ROOT y = s8[1,3,5] convert(clamped)\n}\n"};
  std::string out = "HloModule m\n";
  for (const std::string_view step : kSteps) out += step;
  for (const auto& [name, value] : {std::pair(std::string_view("TYPE"), type), std::pair(std::string_view("SUM"), sum)})
    for (size_t at = out.find(name); at != std::string::npos; at = out.find(name, at))
      out.replace(at, name.size(), value);
  return out;
}

// The report says of each pattern and fused group whether it ran on the device, was declined, or was not offered.
TEST(Report, SaysWhereGroupsRan) {
  constexpr std::string_view kDot =
      "x = s8[1,3,8] parameter(0)\nw = s8[8,5] parameter(1)\n"
      "sum = s32[1,3,5] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}";
  constexpr std::string_view kReversed =
      "x = s8[1,5,8] parameter(0)\nw = s8[3,8,5] parameter(1)\n"
      "sum = s32[1,3,5] convolution(x, w), window={size=3 rhs_reversal=1}, dim_labels=b0f_0io->b0f";
  const Folder folder;
  write(folder / "taken.hlo", quantized_layer(kDot, "f32"));
  write(folder / "not_offered.hlo", quantized_layer(kDot, "bf16"));
  write(folder / "declined.hlo", quantized_layer(kReversed, "f32"));
  // The device has kernels for layers whose steps are f32, and for no reversed windows.
  const std::string device = build_dir() + "/lib/collet/test_backends/libcollet_backend_npu.so --option features=0";
  const Ran ran = collet("conform --backend " + device + " --from " + folder.path() + " --json " +
                         (folder / "report.json") + " --html " + (folder / "page.html"));
  EXPECT_EQ(ran.code, 0) << ran.err;
  // The group that is taken is a case of its own as well.
  EXPECT_TRUE(contains(ran.out,
                       "groups of ops, by the cases that have them:\n"
                       "  pattern  integer_convolution      1 declined: s8\n"
                       "  pattern  integer_dot              3 cases on the device: s8; 1 not offered\n"))
      << ran.out;
  const json::value report = json::parse(contents(folder / "report.json"));
  EXPECT_EQ(complaint(report, schema(), "report"), "");
  const std::string groups = json::serialize(report.at("groups"));
  EXPECT_TRUE(contains(groups,
                       R"([{"kind":"pattern","name":"integer_convolution","on_device":0,"not_run":0,"declined":1,)"
                       R"("not_offered":0,"types_on_device":[],"types_elsewhere":["s8"]},)"
                       R"({"kind":"pattern","name":"integer_dot","on_device":3,"not_run":0,"declined":0,)"
                       R"("not_offered":1,"types_on_device":["s8"],"types_elsewhere":[]})"))
      << groups;
  const std::string page = contents(folder / "page.html");
  EXPECT_TRUE(
      contains(page,
               "<tr><td><code>integer_dot</code><td>pattern<td class=\"n\">3<td class=\"n\">0<td class=\"n\">1<td "
               "class=\"n\">0<td>s8 <td>\n"))
      << page;
}

// A failure comes with program, inputs, what was expected, and a smaller program that shows it.
TEST(Report, ExplainsFailures) {
  const Folder folder;
  const Ran ran = collet(mutant(
      "one-element", "--filter 'dot/f32/*' --json " + (folder / "report.json") + " --html " + (folder / "page.html")));
  ASSERT_EQ(ran.code, 1) << ran.err;
  const json::value report = json::parse(contents(folder / "report.json"));
  size_t failed = 0, reduced = 0;
  for (const json::value& one : report.at("cases").as_array()) {
    if (one.at("status") != "fail") continue;
    ++failed;
    EXPECT_TRUE(contains(std::string_view(one.at("program").as_string()), " dot("));
    EXPECT_TRUE(contains(std::string_view(one.at("evidence").as_string()), ": expected "));
    EXPECT_TRUE(contains(std::string_view(one.at("evidence").as_string()), "p0: f32["));
    const json::value* smaller = one.as_object().if_contains("reduced");
    if (smaller == nullptr) continue;
    ++reduced;
    EXPECT_LE(smaller->as_string().size(), one.at("program").as_string().size() + 64);
  }
  EXPECT_GT(failed, 3u);
  EXPECT_EQ(reduced, 1u) << "the first of the op";
  const std::string page = contents(folder / "page.html");
  for (const char* part :
       {"<details id=\"dot/f32/", "<p>A smaller program that fails</p>", "<p>Elements and inputs</p>",
        "class=\"f\"><a href=\"#cases:dot/f32\">", "<div class=\"cases\" id=\"cases:dot/f32\">"})
    EXPECT_TRUE(contains(page, part)) << part;
  // If an op has many failures, most of them are in a part of the page that is closed at first, so that the next op is
  // near.
  ASSERT_GT(failed, 10u);
  const std::string more = "<details class=\"more\"><summary>" + std::to_string(failed - 10) + " more</summary>";
  EXPECT_TRUE(contains(page, more)) << more;
}

// The page must answer a vendor's first questions: which op is wrong, for which operands, since when, and what to do.
TEST(Report, SaysWhatIsWrongSinceWhenAndWhatNext) {
  const Folder folder;
  const std::string wrong = mutation("shift_count_wraps:shift-left"),
                    cases = "--filter 'shift-left/s32/*' --filter 'add/s32/17/*' ";
  const std::string right = "conform --backend interpreter --no-fallback " + cases;
  ASSERT_EQ(collet(right + "--revision aaa --json " + (folder / "a.json")).code, 0);
  ASSERT_EQ(collet(wrong + cases + "--revision bbb --json " + (folder / "b.json")).code, 1);
  ASSERT_EQ(collet(wrong + cases + "--revision ccc --html " + (folder / "page.html") + " --earlier " +
                   (folder / "a.json") + " --earlier " + (folder / "b.json"))
                .code,
            1);
  const std::string page = contents(folder / "page.html");
  for (const char* part :
       {"<h2 id=\"wrong\">What is wrong</h2>", "<a href=\"#failed:shift-left\"><code>shift-left</code></a>",
        "wrong where p1 is negative or at least 32", "(bbb); interpreter", "(aaa) did not fail", "(ccc)</h1>",
        "Mend what is <a href=\"#wrong\">wrong</a>", "collet bench --backend", " wrong</figcaption>"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_FALSE(contains(page, "id=\"failed:add\""));
  // Without a failure there is nothing to repair, but the page still names a next step.
  ASSERT_EQ(collet(right + "--html " + (folder / "good.html")).code, 0);
  const std::string good = contents(folder / "good.html");
  EXPECT_FALSE(contains(good, "What is wrong"));
  EXPECT_TRUE(contains(good, "<h2 id=\"next\">What next</h2>"));
  EXPECT_TRUE(contains(good, "--revision"));
  EXPECT_TRUE(contains(good, ">It conforms in the cases that were chosen.<"));
  EXPECT_EQ(collet(right + "--html " + (folder / "x.html") + " --earlier docs/tool.md").code, 3) << "no report";
}

// If the case itself crashes, the report says so.
TEST(Report, BlamesTheCaseThatCrashes) {
  const Ran ran = collet(mutant("crash", "--filter 'sort/f32/*' --filter 'reverse/f32/*' --json -"));
  ASSERT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(contains(ran.out, "; it crashes alone as well")) << ran.out;
}

TEST(Report, HasAPageOfTwoRunsASpeedTableAndABadge) {
  const Folder folder;
  const std::string good = folder / "good.json", bad = folder / "bad.json";
  ASSERT_EQ(collet("conform --backend interpreter --no-fallback --filter 'dot/f32/1*' --json " + good + " --badge " +
                   (folder / "good.svg"))
                .code,
            0);
  ASSERT_EQ(
      collet(mutant("one-element", "--filter 'dot/f32/1*' --json " + bad + " --badge " + (folder / "bad.svg"))).code,
      1);
  EXPECT_TRUE(contains(contents(folder / "good.svg"), ">Collet opset 1</text>"));
  EXPECT_TRUE(contains(contents(folder / "good.svg"), ">conforms, in part</text>"));
  EXPECT_TRUE(contains(contents(folder / "bad.svg"), ">does not conform</text>"));
  EXPECT_EQ(collet("conform --diff " + good + " " + bad + " --html " + (folder / "diff.html")).code, 1);
  EXPECT_TRUE(contains(contents(folder / "diff.html"), "<h2>fails now: ")) << contents(folder / "diff.html");
  write(folder / "bench.json",
        R"({"backend": "acme", "against": "cpu", "machine": {}, "cases": [{"name": "softmax", "family": "softmax",
            "of_limit": 0.5, "fused": {"median_ns": 2000}, "against": {"median_ns": 3000}}]})");
  const std::string line =
      "conform --backend interpreter --filter 'dot/f32/1*' --html " + (folder / "page.html") + " --speed ";
  ASSERT_EQ(collet(line + (folder / "bench.json")).code, 0);
  EXPECT_TRUE(contains(contents(folder / "page.html"), "<td class=\"n\">0.50<td class=\"n\">1.50"));
  EXPECT_EQ(collet(line + good).code, 3) << "no report of bench";
}

TEST(Report, ShowsHowLongFuzzingGoesOn) {
  const Ran ran = collet("conform --backend interpreter --fuzz 2");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_FALSE(contains(ran.err, "/1000000")) << ran.err;
}

}  // namespace
}  // namespace collet::tool::testing
