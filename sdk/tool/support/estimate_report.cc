// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/estimate_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "conformance/report/markup.h"
#include "conformance/report/page_style.h"
#include "hlo/base/json.h"

namespace collet::tool {
namespace {

using conformance::escape_markup;
using hlo::estimate::Bound;
using hlo::estimate::bound_name;
using hlo::estimate::OpTime;
using hlo::estimate::Step;

std::string time_text(double ns) {
  return ns < 1e3   ? fmt::format("{:.0f} ns", ns)
         : ns < 1e6 ? fmt::format("{:.2f} us", ns * 1e-3)
         : ns < 1e9 ? fmt::format("{:.2f} ms", ns * 1e-6)
                    : fmt::format("{:.3f} s", ns * 1e-9);
}

std::string scaled(double value, std::string_view unit) {
  constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t i = 0;
  for (; value >= 1000 && i + 1 < std::size(kPrefixes); ++i) value /= 1000;
  return fmt::format("{:.3g} {}{}", value, kPrefixes[i], unit);
}

double share(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

/// The parts of a step, in the order in which they are shown.
struct Portion {
  const char* name;
  double ns;
  const char* colour;
};
std::vector<Portion> portions(const Step& step) {
  return {{"compute", step.compute_ns, "#2f7d4f"},
          {"memory", step.memory_ns, "#3b6ea8"},
          {"launches", step.launch_ns, "#8a8a8a"},
          {"network", step.network_ns, "#c2562d"}};
}

std::string largest_portion(const Step& step) {
  const std::vector<Portion> all = portions(step);
  return std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.ns < b.ns; })->name;
}

std::vector<const OpTime*> longest(const Step& step, size_t most) {
  std::vector<const OpTime*> out;
  for (const OpTime& one : step.ops)
    if (one.bound != Bound::Network) out.push_back(&one);
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->total_ns() > b->total_ns(); });
  out.resize(std::min(out.size(), most));
  return out;
}

/// Collectives of one kind in groups of one span.
struct Exchange {
  std::string what, span, level;
  double times = 0, bytes = 0, ns = 0;
};
std::vector<Exchange> exchanges(const Estimate& estimate, const Step& step) {
  std::map<std::pair<std::string, std::string>, Exchange> by_kind;
  for (const OpTime& one : step.ops) {
    if (one.bound != Bound::Network) continue;
    std::vector<int64_t> outside_first(one.span.rbegin(), one.span.rend());
    const std::string span = fmt::format("{}", fmt::join(outside_first, " x "));
    Exchange& all = by_kind[{one.what, span}];
    all.what = one.what;
    all.span = span;
    all.level = one.level < estimate.machine.network.size() ? estimate.machine.network[one.level].name : "";
    all.times += one.times;
    all.bytes += one.times * one.bytes;
    all.ns += one.total_ns();
  }
  std::vector<Exchange> out;
  for (auto& [key, one] : by_kind) out.push_back(std::move(one));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
  return out;
}

std::string level_names(const Estimate& estimate) {
  std::vector<std::string> names;
  for (auto level = estimate.machine.network.rbegin(); level != estimate.machine.network.rend(); ++level)
    names.push_back(level->name);
  return fmt::format("{}", fmt::join(names, " x "));
}

std::string memory_text(const Estimate& estimate) {
  const auto& memory = estimate.step.memory;
  std::string out =
      fmt::format("{} arguments, {} results, {} constants, {} temporaries: {}", scaled(memory.arguments, "B"),
                  scaled(memory.results, "B"), scaled(memory.constants, "B"), scaled(memory.temporaries, "B"),
                  scaled(memory.total(), "B"));
  const double capacity = estimate.machine.memory_bytes;
  if (capacity > 0)
    out += fmt::format(" of {}{}", scaled(capacity, "B"),
                       memory.total() > capacity ? ", MORE THAN THERE IS"
                                                 : fmt::format(" ({:.0f} %)", share(memory.total(), capacity)));
  return out;
}

// The efficiency of a projection: the work of all devices per time, beside that of the estimated step.
double efficiency(const Estimate& estimate, const Step& projected) {
  return share(estimate.step.total_ns(), projected.total_ns());
}

// A bar of the portions of a step; `width` is that of the whole picture, for `most_ns`.
std::string bar(const Step& step, double most_ns, double width) {
  std::string out = fmt::format("<svg width=\"{:.0f}\" height=\"22\" role=\"img\">", width);
  double x = 0;
  for (const Portion& one : portions(step)) {
    const double w = most_ns > 0 ? width * one.ns / most_ns : 0;
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"2\" width=\"{:.1f}\" height=\"18\" fill=\"{}\"><title>{}: {}</title></rect>", x, w,
        one.colour, one.name, time_text(one.ns));
    x += w;
  }
  return out + "</svg>";
}

}  // namespace

std::string estimate_text(const Estimate& estimate, size_t most) {
  const Step& step = estimate.step;
  const double total = step.total_ns();
  std::string out =
      fmt::format("'{}' on {} device{}{}: {} a step", step.name, step.devices, step.devices == 1 ? "" : "s",
                  estimate.machine.name.empty() ? "" : " of '" + estimate.machine.name + "'", time_text(total));
  if (step.network_ns > 0) out += fmt::format(", {} if all communication overlaps", time_text(step.overlapped_ns()));
  out += "\n";
  for (const Portion& one : portions(step))
    out += fmt::format("  {:<10} {:>10}  {:5.1f} %\n", one.name, time_text(one.ns), share(one.ns, total));
  out += fmt::format("  limited by {}; products reach {:.1f} % of their peak\n", largest_portion(step),
                     share(step.peak_ns, total));
  if (estimate.measured_ns > 0)
    out += fmt::format("  measured {}: the estimate is {:+.1f} % of that\n", time_text(estimate.measured_ns),
                       100 * (total / estimate.measured_ns - 1));
  out += fmt::format("work of a device: {}, {} in memory, {} exchanged, {:.0f} kernels\n", scaled(step.flops, "flop"),
                     scaled(step.bytes, "B"), scaled(step.network_bytes, "B"), step.launches);
  out += fmt::format("memory of a device: {}\n", memory_text(estimate));
  out += fmt::format("\n{:>10} {:>7} {:>7}  {:<8} {:>11} {:>9}  {}\n", "time", "share", "times", "limit", "flops",
                     "bytes", "op");
  for (const OpTime* one : longest(step, most))
    out += fmt::format("{:>10} {:>5.1f} % {:>7.0f}  {:<8} {:>11} {:>9}  {} '{}'{}\n", time_text(one->total_ns()),
                       share(one->total_ns(), total), one->times, bound_name(one->bound),
                       scaled(one->times * one->flops, ""), scaled(one->times * one->bytes, "B"), one->what, one->name,
                       one->where.empty() ? "" : "  " + one->where);
  if (const std::vector<Exchange> all = exchanges(estimate, step); !all.empty()) {
    out += fmt::format("\n{:>10} {:>7} {:>7} {:>9}  {:<20} groups of {}\n", "time", "share", "times", "bytes",
                       "collective", level_names(estimate));
    for (const Exchange& one : all)
      out += fmt::format("{:>10} {:>5.1f} % {:>7.0f} {:>9}  {:<20} {}, by {}\n", time_text(one.ns),
                         share(one.ns, total), one.times, scaled(one.bytes, "B"), one.what, one.span, one.level);
  }
  if (!estimate.projected.empty()) {
    out += fmt::format("\n{:>9} {:>10} {:>10} {:>11}  (each device does the same)\n", "devices", "step", "network",
                       "efficiency");
    out += fmt::format("{:>9} {:>10} {:>10} {:>9.1f} %\n", step.devices, time_text(total), time_text(step.network_ns),
                       100.0);
    for (const Step& one : estimate.projected)
      out += fmt::format("{:>9} {:>10} {:>10} {:>9.1f} %\n", one.devices, time_text(one.total_ns()),
                         time_text(one.network_ns), efficiency(estimate, one));
  }
  for (const std::string& note : step.notes) out += "note: " + note + "\n";
  return out;
}

namespace {

void write_step(JsonWriter& json, const Step& step) {
  json.begin_object().field("devices", step.devices).field("step_ns", step.total_ns());
  json.field("overlapped_ns", step.overlapped_ns()).field("compute_ns", step.compute_ns);
  json.field("memory_ns", step.memory_ns).field("launch_ns", step.launch_ns).field("network_ns", step.network_ns);
}

}  // namespace

std::string estimate_json(const Estimate& estimate) {
  const Step& step = estimate.step;
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("program", step.name).field("machine", estimate.machine.name).key("step");
  write_step(json, step);
  json.field("limited_by", largest_portion(step)).field("peak_ns", step.peak_ns).field("flops", step.flops);
  json.field("bytes", step.bytes)
      .field("network_bytes", step.network_bytes)
      .field("kernels", step.launches)
      .end_object();
  if (estimate.measured_ns > 0) json.field("measured_ns", estimate.measured_ns);
  json.key("memory").begin_object().field("argument_bytes", step.memory.arguments);
  json.field("result_bytes", step.memory.results).field("constant_bytes", step.memory.constants);
  json.field("temporary_bytes", step.memory.temporaries).field("total_bytes", step.memory.total());
  json.field("capacity_bytes", estimate.machine.memory_bytes).end_object();
  json.key("ops").begin_array();
  for (const OpTime& one : step.ops) {
    json.begin_object().field("name", one.name).field("op", one.what).field("op_name", one.where);
    json.field("times", one.times).field("ns", one.ns).field("flops", one.flops).field("bytes", one.bytes);
    json.field("limit", bound_name(one.bound));
    if (one.bound == Bound::Network) {
      json.key("span").begin_array();
      for (auto n = one.span.rbegin(); n != one.span.rend(); ++n) json.value(*n);
      json.end_array();
    }
    json.end_object();
  }
  json.end_array().key("projected").begin_array();
  for (const Step& one : estimate.projected) {
    write_step(json, one);
    json.field("efficiency", efficiency(estimate, one) / 100).end_object();
  }
  json.end_array().key("notes").begin_array();
  for (const std::string& note : step.notes) json.value(note);
  json.end_array().end_object();
  return out + "\n";
}

std::string estimate_page(const Estimate& estimate, size_t most) {
  constexpr double kWidth = 640;
  const Step& step = estimate.step;
  const double total = step.total_ns();
  const std::string title = fmt::format("{} on {} devices", escape_markup(step.name), step.devices);
  std::string body = fmt::format(
      "<h1>{}</h1><p>{}: <b>{}</b> a step, {} if all communication overlaps; limited by {}.</p>", title,
      escape_markup(estimate.machine.name), time_text(total), time_text(step.overlapped_ns()), largest_portion(step));
  body += "<p>" + bar(step, total, kWidth) + "</p><table><tr><th></th><th></th><th>time</th><th>share</th></tr>";
  for (const Portion& one : portions(step))
    body += fmt::format("<tr><td style=\"background:{}\">&#160;&#160;</td><td>{}</td><td>{}</td><td>{:.1f} %</td></tr>",
                        one.colour, one.name, time_text(one.ns), share(one.ns, total));
  body += "</table>";
  const double capacity = estimate.machine.memory_bytes;
  body += fmt::format("<h2>Memory of a device</h2><p>{}</p>", memory_text(estimate));
  if (capacity > 0)
    body += fmt::format(
        "<svg width=\"{0:.0f}\" height=\"22\"><rect y=\"2\" width=\"{0:.0f}\" height=\"18\" fill=\"#dddddd\"/>"
        "<rect y=\"2\" width=\"{1:.1f}\" height=\"18\" fill=\"{2}\"/></svg>",
        kWidth, kWidth * std::min(1.0, step.memory.total() / capacity),
        step.memory.total() > capacity ? "#b00020" : "#3b6ea8");
  body +=
      "<h2>Ops</h2><table><tr><th>time</th><th>share</th><th>times</th><th>limit</th><th>flops</th><th>bytes</th>"
      "<th>op</th><th>source</th></tr>";
  for (const OpTime* one : longest(step, most))
    body += fmt::format(
        "<tr><td>{}</td><td>{:.1f} %</td><td>{:.0f}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        time_text(one->total_ns()), share(one->total_ns(), total), one->times, bound_name(one->bound),
        scaled(one->times * one->flops, ""), scaled(one->times * one->bytes, "B"),
        escape_markup(one->what + " " + one->name), escape_markup(one->where));
  body += "</table>";
  if (const std::vector<Exchange> all = exchanges(estimate, step); !all.empty()) {
    body += fmt::format(
        "<h2>Collectives</h2><table><tr><th>time</th><th>share</th><th>times</th><th>bytes</th><th>op</th>"
        "<th>{}</th><th>limited by</th></tr>",
        escape_markup("groups of " + level_names(estimate)));
    for (const Exchange& one : all)
      body += fmt::format(
          "<tr><td>{}</td><td>{:.1f} %</td><td>{:.0f}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
          time_text(one.ns), share(one.ns, total), one.times, scaled(one.bytes, "B"), one.what, one.span,
          escape_markup(one.level));
    body += "</table>";
  }
  if (!estimate.projected.empty()) {
    double most_ns = total;
    for (const Step& one : estimate.projected) most_ns = std::max(most_ns, one.total_ns());
    body +=
        "<h2>More devices, each of which does the "
        "same</h2><table><tr><th>devices</th><th>step</th><th>efficiency</th><th></th></tr>";
    const auto row = [&](const Step& one) {
      body += fmt::format("<tr><td>{}</td><td>{}</td><td>{:.1f} %</td><td>{}</td></tr>", one.devices,
                          time_text(one.total_ns()), efficiency(estimate, one), bar(one, most_ns, kWidth));
    };
    row(step);
    for (const Step& one : estimate.projected) row(one);
    body += "</table>";
  }
  if (!step.notes.empty()) body += "<h2>Not counted</h2><ul>";
  for (const std::string& note : step.notes) body += "<li>" + escape_markup(note) + "</li>";
  if (!step.notes.empty()) body += "</ul>";
  return fmt::format(
      "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{}</title><style>{}</style></head><body>{}</body></html>\n",
      title, conformance::kPageStyle, body);
}

}  // namespace collet::tool
