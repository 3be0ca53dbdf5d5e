// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/matmul/product_schedule.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "sdk/codegen/schedule/actions.h"

namespace collet::codegen {

ProductSchedule schedule_of(const Product& product, const BlockedProduct& call) {
  return {product.tile_rows, product.vectors, call.depth_block, call.chunks, call.column_parts};
}

std::string print_actions(const ProductSchedule& s) {
  std::string out;
  const auto add = [&](const std::string& action) { out += (out.empty() ? "" : "; ") + action; };
  if (s.tile_rows != 0) add("tile " + std::to_string(s.tile_rows) + " " + std::to_string(s.vectors));
  if (s.depth_block != 0) add("depth " + std::to_string(s.depth_block));
  if (s.chunks != 0) add("chunks " + std::to_string(s.chunks));
  if (s.column_parts != 0) add("parts " + std::to_string(s.column_parts));
  return out;
}

Status read_actions(std::string_view actions, ProductSchedule& out) {
  static_assert(kMostTileRows == 14 && kMostTileVectors == 8 && kMostDepthBlock == 1024,
                "the messages have these limits");
  ProductSchedule read;
  const auto number = [](const std::string& word, int64_t most, int64_t& to) {
    return read_number(word, "", 1, most, to);
  };
  const auto apply = [&](const std::vector<std::string>& words) -> const char* {
    const std::string& name = words[0];
    if (name == "tile" && words.size() == 3) {
      int64_t rows = 0, vectors = 0;
      if (!number(words[1], kMostTileRows, rows)) return "a tile has 1 to 14 rows";
      if (!number(words[2], kMostTileVectors, vectors)) return "a row of a tile has 1 to 8 vectors";
      read.tile_rows = static_cast<int>(rows);
      read.vectors = static_cast<int>(vectors);
      return nullptr;
    }
    if (words.size() != 2) return "it is no action of a product, or has another number of words";
    if (name == "depth") {
      const bool good = number(words[1], kMostDepthBlock, read.depth_block) && read.depth_block % 4 == 0;
      return good ? nullptr : "a block of the depth has a multiple of 4 steps, at most 1024";
    }
    if (name == "chunks") return number(words[1], INT32_MAX, read.chunks) ? nullptr : "there is at least 1 chunk";
    if (name == "parts") return number(words[1], INT32_MAX, read.column_parts) ? nullptr : "there is at least 1 part";
    return "it is no action of a product, or has another number of words";
  };
  COLLET_CODEGEN_TRY(for_each_action(actions, apply));
  out = read;
  return {};
}

std::vector<std::string> neighbour_schedules(const Product& product, const BlockedProduct& call, const Target& target) {
  const ProductSchedule own = schedule_of(product, call);
  std::vector<std::string> out;
  std::set<std::string> seen{print_actions(own)};
  const auto add = [&](const ProductSchedule& s) {
    std::string actions = print_actions(s);
    ProductSchedule legal;
    if (read_actions(actions, legal).ok() && seen.insert(actions).second) out.push_back(std::move(actions));
  };
  // The registers that a tile has beside its sums: an element of a, and a row of b.
  const auto fits = [&](int64_t rows, int64_t vectors) {
    return rows >= 1 && vectors >= 1 && rows <= product.rows && (rows + 1) * vectors + 1 <= target.vector_registers &&
           (vectors - 1) * product.lanes < product.columns;
  };
  for (int64_t vectors = 1; vectors <= kMostTileVectors; ++vectors) {
    for (int64_t rows = 1; rows <= kMostTileRows; ++rows) {
      // Smaller tiles than half of the registers' read their operands more often than others.
      const bool is_near = vectors == own.vectors && std::abs(rows - own.tile_rows) <= 2;
      if (!fits(rows, vectors) || !(is_near || 2 * rows * vectors >= target.vector_registers)) continue;
      if (!is_near && fits(rows + 1, vectors)) continue;
      ProductSchedule changed = own;
      changed.tile_rows = static_cast<int>(rows);
      changed.vectors = static_cast<int>(vectors);
      changed.chunks = changed.column_parts = 0;
      add(changed);
    }
  }
  const auto change = [&](int64_t ProductSchedule::* field, std::initializer_list<int64_t> values) {
    for (const int64_t value : values) {
      ProductSchedule changed = own;
      changed.*field = value;
      if (value > 0) add(changed);
    }
  };
  if (takes_depth_block(product)) {
    const int64_t depth = own.depth_block;
    change(&ProductSchedule::depth_block,
           {depth / 8 * 4, depth * 2, depth / 16 * 4, depth * 4, (call.depth + 3) / 4 * 4});
  }
  change(&ProductSchedule::chunks, {own.chunks / 2, own.chunks * 2, own.chunks + 1, own.chunks - 1, 1});
  change(&ProductSchedule::column_parts,
         {own.column_parts / 2, own.column_parts * 2, own.column_parts + 1, own.column_parts - 1, 1});
  return out;
}

}  // namespace collet::codegen
