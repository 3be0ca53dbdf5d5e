// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sdk/tool/draw.h"

namespace collet::tool {
namespace {

constexpr double kMargin = 16, kTitle = 26, kGap = 28, kLine = 14, kPadding = 8;
// Boxes fill rows up to this width, or that of the widest.
constexpr double kRow = 1800;

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

void write_edge(const BoxLayout::Edge& edge, std::string& out) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "<path class=\"e\" d=\"M{:.1f} {:.1f}", edge.points[0].x, edge.points[0].y);
  for (size_t i = 1; i < edge.points.size(); ++i) {
    const Point &a = edge.points[i - 1], &b = edge.points[i];
    const double middle = (a.y + b.y) / 2;
    fmt::format_to(to, "C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", a.x, middle, b.x, middle, b.x, b.y);
  }
  out += "\"/>\n";
}

void write_node(const DrawnNode& node, Point at, Point size, std::string& out) {
  auto to = std::back_inserter(out);
  if (!node.called.empty()) fmt::format_to(to, "<a href=\"#c{}\">", node.called[0]);
  fmt::format_to(to,
                 "<g><title>{}</title><rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                 "rx=\"5\" fill=\"{}\"/>\n",
                 escaped(node.tip), node.is_root ? "n r" : "n", at.x, at.y, size.x, size.y, node.colour);
  double y = at.y + kPadding + kLine - 3;
  fmt::format_to(
      to, "<text x=\"{:.1f}\" y=\"{:.1f}\"><tspan class=\"o\">{}</tspan>  <tspan class=\"m\">{}</tspan></text>\n",
      at.x + kPadding, y, escaped(node.op), escaped(node.name));
  for (const std::string& line : node.lines) {
    y += kLine;
    fmt::format_to(to, "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at.x + kPadding, y, escaped(line));
  }
  out += node.called.empty() ? "</g>\n" : "</g></a>\n";
}

}  // namespace

std::string to_svg(const hlo::Module& module) {
  const std::vector<DrawnBox> boxes = draw(module);
  std::vector<BoxLayout> layouts;
  double row = kRow;
  for (const DrawnBox& box : boxes) {
    layouts.push_back(lay_out(box));
    layouts.back().width = std::max(layouts.back().width, static_cast<double>(box.title.size()) * 8);
    row = std::max(row, layouts.back().width + 2 * kMargin);
  }
  std::string body;
  double x = kGap, y = kGap, tallest = 0, width = 0;
  for (size_t b = 0; b < boxes.size(); ++b) {
    const double w = layouts[b].width + 2 * kMargin, h = layouts[b].height + 2 * kMargin + kTitle;
    if (x > kGap && x + w > row + kGap) {
      x = kGap;
      y += tallest + kGap;
      tallest = 0;
    }
    auto to = std::back_inserter(body);
    fmt::format_to(to,
                   "<g id=\"c{}\" transform=\"translate({:.1f} {:.1f})\">\n<rect class=\"b\" width=\"{:.1f}\" "
                   "height=\"{:.1f}\" rx=\"9\"/>\n<text class=\"t\" x=\"{}\" y=\"{}\">{}</text>\n"
                   "<g transform=\"translate({} {})\">\n",
                   b, x, y, w, h, kMargin, kMargin + 6, escaped(boxes[b].title), kMargin, kMargin + kTitle);
    for (const BoxLayout::Edge& edge : layouts[b].edges) write_edge(edge, body);
    for (size_t n = 0; n < boxes[b].nodes.size(); ++n)
      write_node(boxes[b].nodes[n], layouts[b].at[n], layouts[b].size[n], body);
    body += "</g>\n</g>\n";
    width = std::max(width, x + w);
    tallest = std::max(tallest, h);
    x += w + kGap;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n"
      "<title>{2}</title>\n<style>\ntext{{font:11px monospace;fill:#212529;white-space:pre}}\n.o{{font-weight:bold}}\n"
      ".m{{fill:#495057}}\n.t{{font:bold 14px sans-serif}}\n.n{{stroke:#495057}}\n.r{{stroke-width:2.5}}\n"
      ".b{{fill:#f8f9fa;stroke:#adb5bd}}\n.e{{fill:none;stroke:#868e96;stroke-width:1.2;marker-end:url(#a)}}\n</"
      "style>\n"
      "<defs><marker id=\"a\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" "
      "orient=\"auto\">"
      "<path d=\"M0 0L6 3L0 6z\" fill=\"#868e96\"/></marker></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{3}</svg>\n",
      width + kGap, y + tallest + kGap, escaped(module.name()), body);
}

}  // namespace collet::tool
