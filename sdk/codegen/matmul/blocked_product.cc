// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/matmul/blocked_product.h"

namespace collet::codegen {
namespace {

/// Returns the share of the depth that tiles leave out because it is zero.
int64_t percent_skipped(const BlockedProduct& p) {
  const int64_t all = p.segments.empty() ? p.depth : static_cast<int64_t>(p.segments.size());
  int64_t used = 0;
  for (size_t i = 0; i < p.first_step.size(); ++i) used += p.end_step[i] - p.first_step[i];
  return 100 - 100 * used / (all * static_cast<int64_t>(p.first_step.size()));
}

/// Returns the share of the result that nothing uses.
int64_t percent_unused(const BlockedProduct& p) {
  int64_t used = 0;
  for (size_t i = 0; i < p.first_column.size(); ++i) used += p.end_column[i] - p.first_column[i];
  return 100 - 100 * used / (p.columns * static_cast<int64_t>(p.first_column.size()));
}

}  // namespace

std::vector<std::string> BlockedProduct::functions() const {
  std::vector<std::string> all;
  const auto add = [&](const std::string& name) {
    if (!name.empty()) all.push_back(name);
  };
  for (const auto& row : micro) {
    for (const std::string& name : row) add(name);
  }
  for (const std::string& name : after) add(name);
  for (const std::string& name : fold) add(name);
  for (const std::string* name : {&pack_a, &pack_b, &copy_b}) add(*name);
  return all;
}

int64_t BlockedProduct::jobs() const {
  return batches / shared * chunks * column_parts;
}

int64_t BlockedProduct::depth_blocks() const {
  return segments.empty() ? divide_up(depth, depth_block) : divide_up(static_cast<int64_t>(segments.size()), run_block);
}

int64_t BlockedProduct::a_scratch() const {
  return a_packed ? (divide_up(tiles, chunks) * a_tile * element_bytes + 127) / 64 * 64 : 0;
}

int64_t BlockedProduct::total_columns() const {
  return divide_up(panels, column_parts) * panel;
}

int64_t BlockedProduct::total_scratch() const {
  if (group_blocks == 0) return 0;
  const int64_t rows_of_job = divide_up(tiles * shared, chunks) * tile_rows;
  return divide_up(rows_of_job * total_columns() * element_bytes, 64) * 64;
}

int64_t BlockedProduct::b_scratch() const {
  const int64_t elements = packs_b ? b_matrix : copies_b ? panel * depth_block : 0;
  return elements == 0 ? 0 : (elements * element_bytes + 127) / 64 * 64;
}

std::string print_blocking(const BlockedProduct& p) {
  const auto text = [](int64_t x) { return std::to_string(x); };
  std::string out = text(p.batches) + " of " + text(p.rows) + " x " + text(p.columns) + " x " + text(p.depth) +
                    ", tiles of " + text(p.tile_rows) + " x " + text(p.panel) + ", depth blocks of " +
                    text(p.depth_block) + ", " + text(p.chunks) + " x " + text(p.column_parts) + " parts";
  if (p.a_packed) out += ", a packed";
  if (p.b_packed) out += ", b packed";
  if (p.group_blocks != 0) out += ", groups of " + text(p.group_blocks);
  if (p.copies_b) out += ", panels of b copied";
  if (p.epilogue) out += ", epilogue";
  if (!p.first_step.empty()) out += ", " + text(percent_skipped(p)) + (p.checks_parts ? " % masked" : " % in padding");
  if (!p.first_column.empty()) out += ", " + text(percent_unused(p)) + " % not used";
  return out;
}

}  // namespace collet::codegen
