// SPDX-License-Identifier: Apache-2.0
#include "conformance/report/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "conformance/report/html_parts.h"
#include "conformance/report/markup.h"
#include "conformance/report/read_json.h"
#include "hlo/base/files.h"
#include "hlo/base/json.h"

namespace collet::conformance {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr size_t kMostReasons = 10;  // for which a bundle is refused
constexpr uint64_t kMostBundle = uint64_t{1} << 30, kMostNote = uint64_t{1} << 20;

// Returns the value of a line "key: value" of a machine's description.
std::string line_of(std::string_view machine, std::string_view key) {
  const std::string start = fmt::format("{}: ", key);
  while (!machine.empty()) {
    const size_t end = std::min(machine.find('\n'), machine.size());
    if (machine.starts_with(start)) return std::string(machine.substr(start.size(), end - start.size()));
    machine.remove_prefix(std::min(end + 1, machine.size()));
  }
  return {};
}

// Reads what the submitter wrote beside the bundle.
void read_note(const fs::path& path, Submission& out) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const Expected<std::string> text = read_file(path.string(), kMostNote);
  boost::system::error_code wrong;
  const json::value value = text.ok() ? json::parse(*text, wrong) : json::value();
  if (!text.ok() || wrong || !value.is_object()) {
    out.refused.push_back(path.filename().string() + " is no JSON object");
    return;
  }
  const json::object& note = value.as_object();
  out.product = text_of(note, "product");
  out.vendor = text_of(note, "vendor");
  out.date = text_of(note, "date");
  out.report = text_of(note, "report");
  // The page links to it, so it must not be a script.
  if (!out.report.empty() && !out.report.starts_with("https://")) {
    out.refused.push_back("the link to the report does not begin with https://");
    out.report.clear();
  }
}

Submission read_submission(const fs::path& path, std::span<const Waiver> waivers) {
  Submission out{.file = path.filename().string()};
  read_note(fs::path(path).replace_extension(".json"), out);
  const Expected<std::string> text = read_file(path.string(), kMostBundle);
  Expected<Bundle> read = text.ok() ? read_bundle(out.file, *text) : text.status();
  if (!read.ok()) {
    out.refused.push_back(read.status().message());
    return out;
  }
  Bundle& bundle = *read;
  size_t differences = 0;
  for (const Check& check : check_bundle(bundle, waivers))
    for (const std::string& detail : check.details)
      if (check.state == Check::State::Differs && ++differences <= kMostReasons)
        out.refused.push_back(check.what + ": " + detail);
  if (differences > kMostReasons)
    out.refused.push_back(fmt::format("and {} more, which --verify shows", differences - kMostReasons));
  out.backend = bundle.report.backend;
  out.version = bundle.report.version;
  out.kind = line_of(bundle.report.machine, "kind");
  out.library = bundle.library;
  out.suite = bundle.suite_version;
  out.opset = bundle.report.opset;
  out.seed = bundle.options.seed;
  out.cases = bundle.report.cases.size();
  for (const CaseResult& one : bundle.report.cases) out.waived += !one.waiver.empty();
  if (out.refused.empty()) out.good_for = good_for(bundle);
  return out;
}

// Says what the terms ask for and the bundles lack, or what they are listed for.
void judge(Product& product) {
  std::set<uint64_t> seeds;
  std::map<std::string, size_t> times;
  for (const Submission& one : product.submissions) {
    seeds.insert(one.seed);
    for (const std::string& saying : one.good_for) ++times[saying];
  }
  if (!seeds.contains(0)) {
    product.lacks = "a bundle with seed 0";
  } else if (seeds.size() < 2) {
    product.lacks = "a bundle with another seed";
  } else {
    for (const auto& [saying, count] : times)
      if (count == product.submissions.size()) product.listed_for.push_back(saying);
    if (product.listed_for.empty())
      product.lacks = "a profile that all its bundles claim and prove, with --full and without --option";
  }
}

const Submission& first(const Product& product) {
  return product.submissions.front();
}

std::string title_of(const Submission& one) {
  const std::string backend = fmt::format("{} {}", one.backend, one.version);
  return one.product.empty() ? backend : fmt::format("{} ({})", one.product, backend);
}

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

Expected<Registry> read_registry(const std::string& folder, std::span<const Waiver> waivers) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->is_regular_file(error) && it->path().extension() == ".jsonl") files.push_back(it->path());
  if (error) return not_found(folder + " cannot be read: " + error.message());
  if (files.empty()) return invalid_argument(folder + " has no bundle in it: no .jsonl");
  std::sort(files.begin(), files.end());
  Registry out;
  std::map<std::string, Product> products;  // by library and kind of device
  for (const fs::path& file : files) {
    Submission one = read_submission(file, waivers);
    if (!one.refused.empty()) {
      out.refused.push_back(std::move(one));
    } else {
      products[one.library + one.kind].submissions.push_back(std::move(one));
    }
  }
  for (auto& [key, product] : products) {
    judge(product);
    out.products.push_back(std::move(product));
  }
  std::sort(out.products.begin(), out.products.end(),
            [](const Product& a, const Product& b) { return title_of(first(a)) < title_of(first(b)); });
  return out;
}

std::string registry_text(const Registry& registry) {
  std::string out;
  for (const Product& product : registry.products) {
    out +=
        fmt::format("{}, {}: {}\n", title_of(first(product)), first(product).kind,
                    product.listed_for.empty() ? "not listed, it lacks " + product.lacks : joined(product.listed_for));
    for (const Submission& one : product.submissions)
      out += fmt::format("  {}: seed {}, {} cases, suite {}{}\n", one.file, one.seed, one.cases, one.suite,
                         one.waived > 0 ? fmt::format(", {} by a waiver", one.waived) : "");
  }
  for (const Submission& one : registry.refused) {
    out += fmt::format("refused {}: {}", one.file, one.refused.front());
    out += one.refused.size() > 1 ? fmt::format("; and {} more\n", one.refused.size() - 1) : "\n";
  }
  return out;
}

std::string registry_json(const Registry& registry) {
  std::string out;
  JsonWriter json(out);
  const auto texts = [&](std::string_view key, const std::vector<std::string>& list) {
    json.key(key).begin_array();
    for (const std::string& text : list) json.value(text);
    json.end_array();
  };
  const auto submission = [&](const Submission& one) {
    json.begin_object().field("file", one.file).field("product", one.product).field("vendor", one.vendor);
    json.field("date", one.date)
        .field("report", one.report)
        .field("backend", one.backend)
        .field("version", one.version);
    json.field("kind", one.kind).field("library", one.library).field("suite", one.suite).field("opset", one.opset);
    json.field("seed", one.seed).field("cases", one.cases).field("waived", one.waived);
    texts("refused", one.refused);
    texts("good_for", one.good_for);
    json.end_object();
  };
  json.begin_object().field("suite", kSuiteVersion).field("terms", kTermsVersion).key("products").begin_array();
  for (const Product& product : registry.products) {
    json.begin_object().field("title", title_of(first(product))).field("lacks", product.lacks);
    texts("listed_for", product.listed_for);
    json.key("submissions").begin_array();
    for (const Submission& one : product.submissions) submission(one);
    json.end_array().end_object();
  }
  json.end_array().key("refused").begin_array();
  for (const Submission& one : registry.refused) submission(one);
  json.end_array().end_object();
  return out + "\n";
}

std::string registry_html(const Registry& registry) {
  std::string body =
      "<div class=\"wide\"><table>\n<tr><th>product<th>vendor<th>device<th>good for<th>suite<th>date<th "
      "class=\"n\">cases<th "
      "class=\"n\">waived<th>bundles\n";
  size_t listed = 0;
  for (const Product& product : registry.products) {
    const Submission& one = first(product);
    listed += !product.listed_for.empty();
    size_t cases = 0, waived = 0;
    std::string bundles;
    for (const Submission& each : product.submissions) {
      cases = std::max(cases, each.cases);
      waived = std::max(waived, each.waived);
      bundles += fmt::format("<a href=\"{0}\">seed {1}</a> ", link_to_file(each.file), each.seed);
    }
    const std::string report =
        one.report.empty() ? "" : fmt::format(" <a href=\"{}\">report</a>", escape_markup(one.report));
    body += fmt::format(
        "<tr><td>{}{}<td>{}<td>{}<td class=\"{}\">{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td>{}\n",
        escape_markup(title_of(one)), report, escape_markup(one.vendor), escape_markup(one.kind),
        product.listed_for.empty() ? "bad" : "good",
        escape_markup(product.listed_for.empty() ? "not yet: it lacks " + product.lacks : joined(product.listed_for)),
        escape_markup(one.suite), escape_markup(one.date), cases, waived, bundles);
  }
  body += "</table></div>\n";
  if (!registry.refused.empty()) {
    body += "<h2>Refused</h2>\n<ul>\n";
    for (const Submission& one : registry.refused)
      body += fmt::format("<li><code>{}</code>: {}\n", escape_markup(one.file), escape_markup(joined(one.refused)));
    body += "</ul>\n";
  }
  return page("Collet conformance: products",
              fmt::format("{} of {} products are listed", listed, registry.products.size()),
              listed == registry.products.size() && registry.refused.empty(), body);
}

}  // namespace collet::conformance
