// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "sdk/tool/draw.h"

namespace collet::tool {
namespace {

constexpr double kCharacter = 6.7, kLine = 14, kPadding = 8, kGapX = 18, kGapY = 34, kBendWidth = 4;
constexpr int kSweeps = 8, kShifts = 10;
// Edges over many layers have bends in each; beyond this many they are straight lines.
constexpr size_t kMostBends = 200000;

// A node, or the bend of an edge that crosses a layer.
struct Item {
  double width = kBendWidth, x = 0, order = 0;
  std::vector<size_t> above, below;
  double centre() const { return x + width / 2; }
};

class Layout {
 public:
  explicit Layout(const DrawnBox& box) : box_(box) {}

  BoxLayout run() {
    measure();
    rank();
    bend();
    for (int i = 0; i < kSweeps; ++i) sort_layers(i % 2 == 0);
    place();
    return finish();
  }

 private:
  void measure() {
    for (const DrawnNode& node : box_.nodes) {
      size_t most = node.op.size() + 2 + node.name.size();
      for (const std::string& line : node.lines) most = std::max(most, line.size());
      out_.size.push_back({static_cast<double>(most) * kCharacter + 2 * kPadding,
                           static_cast<double>(node.lines.size() + 1) * kLine + 2 * kPadding});
      items_.emplace_back();
      items_.back().width = out_.size.back().x;
    }
  }

  void rank() {
    const size_t n = box_.nodes.size();
    rank_.assign(n, 0);
    for (size_t i = 0; i < n; ++i)
      for (size_t input : box_.nodes[i].inputs) rank_[i] = std::max(rank_[i], rank_[input] + 1);
    // What has no operands stands right above its first user.
    std::vector<size_t> first_user(n, SIZE_MAX);
    for (size_t i = 0; i < n; ++i)
      for (size_t input : box_.nodes[i].inputs) first_user[input] = std::min(first_user[input], rank_[i]);
    for (size_t i = 0; i < n; ++i)
      if (box_.nodes[i].inputs.empty() && first_user[i] != SIZE_MAX) rank_[i] = first_user[i] - 1;
    size_t layers = 0;
    for (size_t r : rank_) layers = std::max(layers, r + 1);
    layers_.resize(layers);
    for (size_t i = 0; i < n; ++i) layers_[rank_[i]].push_back(i);
  }

  // The item of `node` in layer `layer`: itself, or a bend, which all edges from it share.
  size_t item_in(size_t node, size_t layer) {
    size_t last = node;
    for (size_t r = rank_[node] + 1; r <= layer; ++r) {
      const auto [it, fresh] = bends_.emplace(node * layers_.size() + r, items_.size());
      if (fresh) {
        items_.emplace_back();
        layers_[r].push_back(it->second);
        connect(last, it->second);
      }
      last = it->second;
    }
    return last;
  }

  void connect(size_t upper, size_t lower) {
    items_[upper].below.push_back(lower);
    items_[lower].above.push_back(upper);
  }

  void bend() {
    size_t bends = 0;
    for (size_t i = 0; i < box_.nodes.size(); ++i)
      for (size_t input : box_.nodes[i].inputs) bends += rank_[i] - rank_[input] - 1;
    straight_ = bends > kMostBends;
    for (size_t i = 0; i < box_.nodes.size(); ++i)
      for (size_t input : box_.nodes[i].inputs) connect(straight_ ? input : item_in(input, rank_[i] - 1), i);
    for (const auto& layer : layers_)
      for (size_t k = 0; k < layer.size(); ++k) items_[layer[k]].order = static_cast<double>(k);
  }

  void sort_layers(bool down) {
    std::vector<double> wish(items_.size());
    for (size_t step = 1; step < layers_.size(); ++step) {
      auto& layer = layers_[down ? step : layers_.size() - 1 - step];
      for (size_t item : layer) {
        const auto& near = down ? items_[item].above : items_[item].below;
        double sum = 0;
        for (size_t other : near) sum += items_[other].order;
        wish[item] = near.empty() ? items_[item].order : sum / static_cast<double>(near.size());
      }
      std::stable_sort(layer.begin(), layer.end(), [&](size_t a, size_t b) { return wish[a] < wish[b]; });
      for (size_t k = 0; k < layer.size(); ++k) items_[layer[k]].order = static_cast<double>(k);
    }
  }

  void place() {
    for (const auto& layer : layers_) {
      double x = 0;
      for (size_t item : layer) {
        items_[item].x = x;
        x += items_[item].width + kGapX;
      }
    }
    for (int i = 0; i < kShifts; ++i) {
      for (size_t r = 1; r < layers_.size(); ++r) shift(layers_[r], true);
      for (size_t r = layers_.size(); r-- > 1;) shift(layers_[r - 1], false);
    }
    double least = items_.empty() ? 0 : items_[0].x;
    for (const Item& item : items_) least = std::min(least, item.x);
    for (Item& item : items_) item.x -= least;
  }

  // Each item towards the middle of its neighbours: once pushing right where they meet, once left; the mean of the two
  // keeps order and gaps as both do.
  void shift(const std::vector<size_t>& layer, bool down) {
    const size_t n = layer.size();
    std::vector<double> left(n), right(n);
    for (size_t k = 0; k < n; ++k) {
      const Item& item = items_[layer[k]];
      const auto& near = down ? item.above : item.below;
      double sum = 0;
      for (size_t other : near) sum += items_[other].centre();
      left[k] = right[k] = near.empty() ? item.x : sum / static_cast<double>(near.size()) - item.width / 2;
    }
    for (size_t k = 1; k < n; ++k) right[k] = std::max(right[k], right[k - 1] + items_[layer[k - 1]].width + kGapX);
    for (size_t k = n; k-- > 1;) left[k - 1] = std::min(left[k - 1], left[k] - items_[layer[k - 1]].width - kGapX);
    for (size_t k = 0; k < n; ++k) items_[layer[k]].x = (left[k] + right[k]) / 2;
  }

  BoxLayout finish() {
    std::vector<double> top(layers_.size()), height(layers_.size(), 0);
    double y = 0;
    for (size_t r = 0; r < layers_.size(); ++r) {
      for (size_t item : layers_[r])
        if (item < box_.nodes.size()) height[r] = std::max(height[r], out_.size[item].y);
      top[r] = y;
      y += height[r] + kGapY;
    }
    out_.height = std::max(0.0, y - kGapY);
    for (size_t i = 0; i < box_.nodes.size(); ++i) {
      out_.at.push_back({items_[i].x, top[rank_[i]]});
      out_.width = std::max(out_.width, items_[i].x + items_[i].width);
    }
    for (size_t i = 0; i < box_.nodes.size(); ++i) {
      const auto& inputs = box_.nodes[i].inputs;
      for (size_t k = 0; k < inputs.size(); ++k) {
        BoxLayout::Edge edge{inputs[k], i, {}};
        edge.points.push_back({items_[inputs[k]].centre(), out_.at[inputs[k]].y + out_.size[inputs[k]].y});
        for (size_t r = rank_[inputs[k]] + 1; r < rank_[i] && !straight_; ++r) {
          const double x = items_[bends_.at(inputs[k] * layers_.size() + r)].centre();
          edge.points.push_back({x, top[r]});
          edge.points.push_back({x, top[r] + height[r]});
        }
        const double part = static_cast<double>(k + 1) / static_cast<double>(inputs.size() + 1);
        edge.points.push_back({items_[i].x + items_[i].width * part, top[rank_[i]]});
        out_.edges.push_back(std::move(edge));
      }
    }
    for (const Item& item : items_) out_.width = std::max(out_.width, item.x + item.width);
    return std::move(out_);
  }

  const DrawnBox& box_;
  BoxLayout out_;
  std::vector<Item> items_;  // nodes first, then bends
  std::vector<size_t> rank_;
  std::vector<std::vector<size_t>> layers_;
  std::unordered_map<size_t, size_t> bends_;  // by node and layer
  bool straight_ = false;
};

}  // namespace

BoxLayout lay_out(const DrawnBox& box) {
  return Layout(box).run();
}

}  // namespace collet::tool
