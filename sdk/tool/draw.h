// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/ir/module.h"

/// \file
/// Pictures of programs: a box for each computation, with its instructions in layers from operands to users. Constants of
/// one element stand in the boxes of their users; bodies of one op, such as a sum's, in that of their caller.

namespace collet::tool {

/// An instruction as it is drawn.
struct DrawnNode {
  std::string op;                  ///< the opcode
  std::string name;                ///< the instruction's
  std::vector<std::string> lines;  ///< type, attributes, constants among the operands
  std::string tip;                 ///< the whole instruction
  std::string_view colour;         ///< by family, "#rrggbb"
  bool is_root = false;
  std::vector<size_t> inputs;  ///< nodes of the same box, in the operands' order
  std::vector<size_t> called;  ///< boxes
};

/// A computation as it is drawn.
struct DrawnBox {
  std::string title;
  std::vector<DrawnNode> nodes;  ///< operands before users
};

/// The entry first.
std::vector<DrawnBox> draw(const hlo::Module& module);

struct Point {
  double x = 0, y = 0;
};

/// Where things lie in a box.
struct BoxLayout {
  struct Edge {
    size_t from = 0, to = 0;
    std::vector<Point> points;  ///< from the bottom of one to the top of the other
  };
  std::vector<Point> at;    ///< upper left corner of each node
  std::vector<Point> size;  ///< width and height of each node
  std::vector<Edge> edges;
  double width = 0, height = 0;
};

/// Layers by longest path, crossings reduced by barycentres.
BoxLayout lay_out(const DrawnBox& box);

/// Graphviz' language: boxes are clusters.
std::string to_dot(const hlo::Module& module);
/// A picture that needs nothing else.
std::string to_svg(const hlo::Module& module);

}  // namespace collet::tool
