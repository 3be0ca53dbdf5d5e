// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "hlo/base/sha256.h"
#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void replace(std::string& text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what;
  text.replace(at, what.size(), by);
}

// Computes all checksums of a changed bundle again, as a forger would.
std::string summed_again(const std::vector<std::string>& lines) {
  std::string out = lines.front() + "\n";
  const std::string key = sha256(out);
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    const std::string body = lines[i].substr(0, lines[i].rfind(",\"sum\":"));
    out += body + ",\"sum\":\"" + sha256(key + body).substr(0, 16) + "\"}\n";
  }
  return out + "{\"sha256\":\"" + sha256(out) + "\"}\n";
}

std::string library(const std::string& name) {
  return build_dir() + "/lib/collet/test_backends/libcollet_backend_" + name + ".so";
}

class Bundle : public ::testing::Test {
 protected:
  // Makes a bundle of a few cases, and returns its lines.
  std::vector<std::string> make(const std::string& more = "") {
    const Ran ran =
        collet("conform --backend interpreter --no-fallback --filter 'negate/f32/*' --bundle " + path_ + more);
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    return lines_of(contents(path_));
  }
  Ran verify(const std::string& text, const std::string& more = "") {
    write(path_, text);
    return collet("conform --verify " + path_ + more);
  }
  void expect_refused(const Ran& ran, const std::string& why) {
    EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.out, why)) << "no '" << why << "' in\n" << ran.out;
    EXPECT_TRUE(contains(ran.out, ": the bundle is refused")) << ran.out;
  }

  Folder folder_;
  std::string path_ = folder_ / "bundle.jsonl";
};

TEST_F(Bundle, HoldsAndIsTheSameEachTime) {
  make();
  const std::string first = contents(path_);
  const Ran ran = collet("conform --verify " + path_ + " --rerun 20%");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  for (const char* part : {"holds        file", "holds        suite", "holds        library", "holds        machine",
                           "holds        sample of ", "sample of seed ", ": the bundle holds"})
    EXPECT_TRUE(contains(ran.out, part)) << part << " is not in\n" << ran.out;
  make();
  EXPECT_EQ(contents(path_), first);
}

TEST_F(Bundle, NamesTheLineThatWasAltered) {
  std::vector<std::string> lines = make();
  ASSERT_GT(lines.size(), 10u);
  const std::string name = lines[4].substr(0, lines[4].find("\", "));
  replace(lines[4], "\"pass\"", "\"fail\"");
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const Ran ran = verify(text);
  expect_refused(ran, "line 5: " + name.substr(name.rfind('"') + 1) + " was altered");
  EXPECT_FALSE(contains(ran.out, "line 6: ")) << ran.out;
}

TEST_F(Bundle, NamesWhatIsMissingTwiceOrForeign) {
  const std::vector<std::string> lines = make();
  std::vector<std::string> changed = lines;
  changed.erase(changed.begin() + 3);
  expect_refused(verify(summed_again(changed)), "/unit is missing");
  changed = lines;
  changed.insert(changed.begin() + 3, lines[3]);
  expect_refused(verify(summed_again(changed)), " stands there twice");
  changed = lines;
  replace(changed[3], "negate/f32/", "negate/f99/");
  expect_refused(verify(summed_again(changed)), "negate/f99/1/unit is no case of this choice");
  changed = lines;
  std::swap(changed[3], changed[4]);
  expect_refused(verify(summed_again(changed)), "not in the order of the suite");
  const std::string whole = contents(path_);
  expect_refused(verify(whole.substr(0, whole.size() / 2)), "it was cut off");
}

TEST_F(Bundle, NamesAnotherSuiteLibraryOrMachine) {
  const std::vector<std::string> lines = make();
  const auto with_head = [&](std::string_view what, std::string_view by) {
    std::vector<std::string> changed = lines;
    const size_t at = changed[0].find(what);
    EXPECT_NE(at, std::string::npos);
    changed[0].replace(at + what.size(), by.size(), by);
    return summed_again(changed);
  };
  // A changed first line is found, whether the checksums are computed again or not.
  std::vector<std::string> changed = lines;
  replace(changed[0], "\"seed\": 0", "\"seed\": 7");
  std::string text;
  for (const std::string& line : changed) text += line + "\n";
  expect_refused(verify(text), "line 1, what the run was, or every result was altered");
  expect_refused(verify(with_head("\"suite\": {\"sha256\": \"", "0123456789")),
                 "the suite that ran has SHA-256 0123456789");
  expect_refused(verify(with_head("interpreter.so\", \"sha256\": \"", "0123456789")),
                 "the library that ran, libcollet_backend_interpreter.so, has 0123456789");
  expect_refused(verify(with_head("\"machine\": {\"sha256\": \"", "0123456789")),
                 "its description has another SHA-256");
  expect_refused(verify(with_head("\"collet\": \"", "9.9.9")), "the bundle is of Collet 9.9.9, this is ");
  make();
  expect_refused(collet("conform --verify " + path_ + " --backend " + library("narrow")),
                 "the library that ran, libcollet_backend_interpreter.so, has ");
}

// All checksums are right and the verdict follows from the results; only running the cases again reveals the forgery.
TEST_F(Bundle, ARerunFindsResultsThatWereMadeUp) {
  const std::string mutant = " --backend " + library("mutant") + " --option backend=" + build_dir() +
                             "/lib/collet/backends/libcollet_backend_interpreter.so";
  const std::string made = "conform --no-fallback --filter 'dot/f32/1*' --option mutant=one-element" + mutant;
  const Ran ran = collet(made + " --bundle " + path_);
  ASSERT_EQ(ran.code, 1) << ran.err;
  std::vector<std::string> lines = lines_of(contents(path_));
  for (std::string& line : lines)
    if (contains(line, "\"fail\"")) line = line.substr(0, line.find("\"fail\"")) + "\"pass\",\"sum\":\"\"}";
  replace(lines[0], "does not conform", "conforms");
  const std::string forged = summed_again(lines);
  const Ran unseen = verify(forged, mutant);
  EXPECT_EQ(unseen.code, 0) << unseen.out << unseen.err;
  expect_refused(verify(forged, mutant + " --rerun 100%"), ": in the bundle pass, here fail: ");
  // A bundle of one shard can be re-run, too. A path that the bundle names is not used.
  ASSERT_EQ(collet(made + " --shard 1/2 --bundle " + path_).code, 1);
  lines = lines_of(contents(path_));
  for (std::string& line : lines)
    if (contains(line, "\"fail\"")) line = line.substr(0, line.find("\"fail\"")) + "\"pass\",\"sum\":\"\"}";
  replace(lines[0], "does not conform", "conforms");
  const std::string shard = summed_again(lines);
  const Ran part = verify(shard, mutant + " --rerun 100%");
  expect_refused(part, ": in the bundle pass, here fail: ");
  const Ran path = verify(shard, " --backend " + library("mutant"));
  EXPECT_EQ(path.code, 3) << path.out;
  EXPECT_TRUE(contains(path.err, "names a path")) << path.err;
}

TEST_F(Bundle, TheVerdictFollowsFromResultsAndClaims) {
  const std::string narrow = " --backend " + library("narrow");
  const Ran ran =
      collet("conform --no-fallback --filter 'compare-*/f32/*' --filter 'add/f32/1*'" + narrow + " --bundle " + path_);
  ASSERT_LE(ran.code, 1) << ran.err;
  std::vector<std::string> lines = lines_of(contents(path_));
  replace(lines[0], "\"claims\": []", "\"claims\": [\"core\"]");
  expect_refused(verify(summed_again(lines), narrow), ": profile core is claimed, and the device did not take it");
  lines = make();
  replace(lines[2], "\"pass\"", "\"fail\"");
  expect_refused(verify(summed_again(lines)),
                 "the bundle says 'conforms'; by its results the backend does not conform");
}

// What was claimed on the command line holds for the sample, too.
TEST_F(Bundle, ARerunHasTheClaimsOfTheRun) {
  const std::string narrow = " --backend " + library("narrow");
  const Ran ran = collet("conform --no-fallback --claim extended --filter 'sort/f32/*' --filter 'add/f32/1/*'" +
                         narrow + " --bundle " + path_);
  ASSERT_EQ(ran.code, 1) << ran.out << ran.err;
  const Ran again = collet("conform --verify " + path_ + narrow + " --rerun 100%");
  EXPECT_FALSE(contains(again.out, "in the bundle fail, here")) << again.out;
}

// The cases of the backend's own patterns are known to the backend alone: with it, a bundle that lacks some is refused.
TEST_F(Bundle, HasTheCasesOfTheBackendsOwnPatterns) {
  const std::string own = " --backend " + library("own_patterns");
  ASSERT_EQ(
      collet("conform --jobs 2 --no-fallback --profile own-patterns --claim own-patterns" + own + " --bundle " + path_)
          .code,
      0);
  const std::string whole = contents(path_);
  const Ran right = verify(whole, own);
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  std::vector<std::string> lines = lines_of(whole);
  const size_t before = lines.size();
  std::erase_if(lines, [](const std::string& line) { return contains(line, "\"own.pool/"); });
  const size_t dropped = before - lines.size();
  ASSERT_GT(dropped, 0u);
  for (std::string& line : lines) {
    const std::string key = "\"cases\": ";
    const size_t at = line.find(key);
    if (at == std::string::npos || !isdigit(line[at + key.size()])) continue;
    const size_t end = line.find_first_not_of("0123456789", at + key.size());
    const size_t count = std::stoul(line.substr(at + key.size(), end));
    line.replace(at + key.size(), end - at - key.size(), std::to_string(count - dropped));
  }
  expect_refused(verify(summed_again(lines), own), "own.pool/");
}

TEST_F(Bundle, SaysWhatItIsGoodFor) {
  const Ran ran = collet(
      "conform --backend interpreter --no-fallback --full --jobs 2 --profile control-flow --claim control-flow "
      "--bundle " +
      path_);
  ASSERT_EQ(ran.code, 0) << ran.out;
  const Ran verified = collet("conform --verify " + path_ + " --rerun 5% --seed 3 --json -");
  EXPECT_EQ(verified.code, 0) << verified.out;
  EXPECT_TRUE(contains(verified.out, "conforms to Collet opset 1, profile control-flow")) << verified.out;
  EXPECT_TRUE(contains(verified.out, "\"seed\": 3")) << verified.out;
  make();
  EXPECT_FALSE(contains(collet("conform --verify " + path_).out, "good for")) << "of a part of the cases";
}

TEST_F(Bundle, ShardsMakeTheSameAsOneRun) {
  make();
  const std::string whole = contents(path_);
  std::string parts;
  for (const char* shard : {"0/2", "1/2"}) {
    const std::string part = folder_ / ("part" + std::string(shard, 1));
    make(" --shard " + std::string(shard) + " --resume " + part);
    parts += contents(part);
  }
  write(folder_ / "parts", parts);
  make(" --resume " + (folder_ / "parts"));
  EXPECT_EQ(contents(path_), whole);
  const Ran other = collet("conform --backend interpreter --no-fallback --filter 'negate/f32/*' --seed 9 --resume " +
                           (folder_ / "parts"));
  EXPECT_NE(other.code, 0);
  EXPECT_TRUE(contains(other.err, " is of another run: ")) << other.err;
}

TEST_F(Bundle, RefusesWhatIsNone) {
  for (const char* text : {"", "{}\n", "HloModule m\n", "{\"format\": \"collet conformance bundle\", \"version\": 2}\n",
                           "{\"format\": \"collet conformance bundle\", \"version\": 1}\n"}) {
    const Ran ran = verify(text);
    EXPECT_EQ(ran.code, 3) << text << ran.err;
    EXPECT_TRUE(contains(ran.err, path_)) << ran.err;
  }
  std::vector<std::string> lines = make();
  replace(lines[0], "\"name\": \"interpreter\"", "\"name\": \"/tmp/libother.so\"");
  EXPECT_EQ(verify(summed_again(lines)).code, 3);
  EXPECT_EQ(collet("conform --verify " + (folder_ / "none")).code, 3);
  for (const char* share : {"0%", "101%", "1", "x%", "%"})
    EXPECT_EQ(collet("conform --verify " + path_ + " --rerun " + share).code, 2) << share;
  EXPECT_EQ(collet("conform --rerun 1%").code, 2);
  EXPECT_EQ(collet("conform --fuzz 1 --bundle " + path_).code, 2);
}

// A failure that has a waiver counts as passed, everywhere under its number; without the waiver the bundle is refused.
TEST_F(Bundle, AWaiverLetsAFailurePassAndIsChecked) {
  const std::string wrong =
      "conform --no-fallback --filter 'subtract/f32/17/unit' --filter 'negate/f32/17/unit' --backend " +
      library("mutation") + " --option mutant=last_is_first:subtract --option backend=" + build_dir() +
      "/lib/collet/backends/libcollet_backend_interpreter.so";
  EXPECT_EQ(collet(wrong).code, 1);
  const std::string waivers = folder_ / "waivers";
  write(waivers, "W7 2026-11-28 1.2 subtract/* a test\n");
  const Ran waived =
      collet(wrong + " --waivers " + waivers + " --bundle " + path_ + " --html " + (folder_ / "page.html"));
  EXPECT_EQ(waived.code, 0) << waived.out << waived.err;
  for (const char* part :
       {"failed, and passed by a waiver:", "W7 subtract/f32/17/unit: waived by W7 of 2026-11-28, a test: result 0",
        "2 of 2 cases passed, 1 of them by a waiver"})
    EXPECT_TRUE(contains(waived.out, part)) << part << " is not in\n" << waived.out;
  EXPECT_TRUE(contains(contents(folder_ / "page.html"), "passed by a waiver: subtract/f32/17/unit (W7)"));
  const std::string bundle = contents(path_);
  EXPECT_TRUE(contains(bundle, "\"waiver\": \"W7\"")) << bundle;
  const std::string same = " --backend " + library("mutation") + " --option backend=" + build_dir() +
                           "/lib/collet/backends/libcollet_backend_interpreter.so";
  EXPECT_EQ(verify(bundle, same + " --waivers " + waivers).code, 0);
  expect_refused(verify(bundle, same), "subtract/f32/17/unit counts as passed by W7, which is no waiver of this case");
  write(waivers, "W7 2026-11-28 1.0 subtract/* of another version of the suite\n");
  EXPECT_EQ(collet(wrong + " --waivers " + waivers).code, 1);
}

TEST_F(Bundle, TheRegistryListsWhatBundlesProveAndRefusesOthers) {
  const std::string folder = folder_ / "registry", html = folder_ / "products.html";
  std::filesystem::create_directory(folder);
  const auto registry = [&] { return collet("conform --registry " + folder + " --html " + html); };
  EXPECT_EQ(registry().code, 2);
  make();
  const std::string good = contents(path_);
  write(folder + "/a-0.jsonl", good);
  write(folder + "/a-0.json",
        R"({"product": "Acme <A1>", "vendor": "Acme", "date": "2026-11-28", "report": "https://acme.example/a"})");
  Ran ran = registry();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "Acme <A1> (interpreter ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "it lacks a bundle with another seed")) << ran.out;
  make(" --seed 7");
  write(folder + "/a-7.jsonl", contents(path_));
  write(folder + "/javascript:alert(1)%2f%2f #?\u00b5.jsonl", contents(path_));  // a browser may take it for a script
  ran = registry();
  EXPECT_TRUE(contains(ran.out, "it lacks a profile that all its bundles claim and prove")) << ran.out;
  write(folder + "/b.jsonl", good.substr(0, good.size() / 2));
  write(folder + "/c.jsonl", "nothing");
  std::string more = good;  // it lacks the cases that the full set has besides
  const std::string part_of_suite = "\"full\": false";
  more.replace(more.find(part_of_suite), part_of_suite.size(), "\"full\": true");
  write(folder + "/d.jsonl", more);
  ran = registry();
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_TRUE(contains(ran.out, "refused b.jsonl: file: ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "refused c.jsonl: c.jsonl is no bundle")) << ran.out;
  const std::string page = contents(html);
  for (const char* part :
       {"Acme &lt;A1&gt;", "<a href=\"https://acme.example/a\">report</a>", "<a href=\"a-7.jsonl\">seed 7</a>",
        "<a href=\"javascript%3Aalert%281%29%252f%252f%20%23%3F%C2%B5.jsonl\">seed 7</a>", "<code>b.jsonl</code>",
        "more, which --verify shows", "0 of 1 products are listed"})
    EXPECT_TRUE(contains(page, part)) << part << " is not in\n" << page;
}

}  // namespace
}  // namespace collet::tool::testing
