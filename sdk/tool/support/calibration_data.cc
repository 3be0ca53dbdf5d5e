// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/calibration_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "hlo/base/files.h"
#include "sdk/tool/support/inputs.h"
#include "sdk/tool/support/npy.h"

namespace collet::tool {
namespace {

using hlo::Literal;
using hlo::Shape;
using Parameters = std::vector<DataParameter>;

std::vector<Shape> shapes_of(const Parameters& parameters) {
  std::vector<Shape> out;
  for (const DataParameter& one : parameters) out.push_back(one.shape);
  return out;
}

std::string text_of(const Parameters& parameters, size_t i) {
  const std::string name = parameters[i].name.empty() ? "" : " (" + parameters[i].name + ")";
  return "parameter " + std::to_string(i) + name;
}

Status check_finite(const Literal& value) {
  if (!hlo::is_float(value.type())) return ok_status();
  for (int64_t i = 0; i < value.element_count(); ++i)
    if (const double x = value.as_double(i); !std::isfinite(x))
      return invalid_argument("element " + std::to_string(i) + " is " + (std::isnan(x) ? "NaN" : "infinite"));
  return ok_status();
}

// Returns the elements of a batch, with the dimensions of `shape`.
Literal part_of(const Literal& array, const Shape& shape, int64_t batch) {
  const auto bytes = static_cast<uint64_t>(shape.with_type(array.type()).byte_size());
  return Literal::from_bytes(shape.with_type(array.type()), array.bytes() + static_cast<uint64_t>(batch) * bytes);
}

/// The batches that one array has for a parameter.
struct Parts {
  Literal array;
  int64_t count = 1;
  int64_t left_out = 0;  ///< rows behind the last whole batch
  bool several = false;  ///< more than one
};

Expected<Parts> parts_of(Literal array, const Shape& shape) {
  Parts out;
  const auto have = array.shape().dims(), need = shape.dims();
  const auto equal = [&](size_t from, size_t of) {
    return std::equal(have.begin() + static_cast<int64_t>(from), have.end(), need.begin() + static_cast<int64_t>(of),
                      need.end());
  };
  if (array.shape().same_dims(shape)) {
    out.several = false;
  } else if (have.size() == need.size() + 1 && equal(1, 0) && have[0] > 0) {
    out.count = have[0];
  } else if (have.size() == need.size() && !need.empty() && need[0] > 0 && have[0] > need[0] && equal(1, 1)) {
    out.count = have[0] / need[0];
    out.left_out = have[0] % need[0];
  } else {
    return invalid_argument("the array is " + array.shape().to_string() + "; " + shape.to_string() +
                            ", or several of it along the first dimension, is needed");
  }
  out.several = out.count > 1;
  out.array = std::move(array);
  return out;
}

class Reader {
 public:
  Reader(std::string program, const Parameters& parameters) : program_(std::move(program)), parameters_(parameters) {}

  Status read(const std::string& word) {
    if (word.starts_with("random:") || word == "rule") {
      COLLET_ASSIGN(std::vector<Literal> one, make_inputs({word}, program_, shapes_of(parameters_)));
      data_.batches.push_back(std::move(one));
      return ok_status();
    }
    std::error_code ignored;
    if (std::filesystem::is_directory(word, ignored)) return read_folder(word);
    return read_file(word).with_prefix(word + ": ");
  }

  CalibrationData finish() {
    data_.same.resize(parameters_.size(), true);
    for (size_t p = 0; p < parameters_.size(); ++p)
      for (size_t b = 1; b < data_.batches.size(); ++b)
        data_.same[p] = data_.same[p] && data_.batches[b][p] == data_.batches[0][p];
    return std::move(data_);
  }

 private:
  static Expected<std::vector<std::string>> entries(const std::string& folder) {
    std::vector<std::string> out;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      if (!entry.path().filename().string().starts_with('.')) out.push_back(entry.path().string());
    if (error) return invalid_argument(folder + ": " + error.message());
    // Numbers in names are compared as numbers: output_2.bin comes before output_10.bin.
    std::sort(out.begin(), out.end(),
              [](const std::string& a, const std::string& b) { return strverscmp(a.c_str(), b.c_str()) < 0; });
    return out;
  }

  Status read_folder(const std::string& folder) {
    COLLET_ASSIGN(const std::vector<std::string> paths, entries(folder));
    if (paths.empty()) return invalid_argument(folder + ": the folder is empty; batches of data are expected in it");
    for (const std::string& path : paths) {
      std::error_code ignored;
      if (!std::filesystem::is_directory(path, ignored)) {
        COLLET_TRY(read_file(path).with_prefix(path + ": "));
        continue;
      }
      COLLET_ASSIGN(std::vector<std::string> files, entries(path));
      std::erase_if(files, [](const std::string& file) { return file.ends_with("/manifest.json"); });
      Expected<std::vector<Literal>> one = make_inputs(files, program_, shapes_of(parameters_));
      if (!one.ok()) return one.status().with_prefix(path + ": ");
      for (size_t i = 0; i < one->size(); ++i) COLLET_TRY(check_finite((*one)[i]).with_prefix(files[i] + ": "));
      data_.batches.push_back(*std::move(one));
    }
    return ok_status();
  }

  Status read_file(const std::string& path) {
    if (!path.ends_with(".npy") && !path.ends_with(".npz"))
      return invalid_argument("data is random:SEED, rule, a .npy or .npz file, or a folder of these or of folders");
    COLLET_ASSIGN(const std::string bytes, read_file_or_pipe(path, kMostBytes));
    if (path.ends_with(".npz")) {
      COLLET_ASSIGN(auto arrays, read_npz(bytes));
      std::vector<std::string> names;
      for (const DataParameter& one : parameters_) names.push_back(one.name);
      COLLET_ASSIGN(std::vector<Literal> ordered, in_order_of_parameters(std::move(arrays), names));
      return add(std::move(ordered));
    }
    if (parameters_.size() != 1)
      return invalid_argument("the program has " + std::to_string(parameters_.size()) +
                              " parameters: write their arrays to a .npz file, or to a folder");
    COLLET_ASSIGN(Literal array, read_npy(bytes));
    std::vector<Literal> one;
    one.push_back(std::move(array));
    return add(std::move(one));
  }

  // Adds the batches that one array for each parameter has.
  Status add(std::vector<Literal> arrays) {
    std::vector<Parts> parts;
    int64_t count = 1;
    size_t longest = 0;
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::string where = text_of(parameters_, i) + ": ";
      COLLET_TRY(check_finite(arrays[i]).with_prefix(where));
      Expected<Parts> one = parts_of(std::move(arrays[i]), parameters_[i].shape);
      if (!one.ok()) return one.status().with_prefix(where);
      if (one->several && count > 1 && one->count != count)
        return invalid_argument(where + "the array has " + std::to_string(one->count) + " batches; that of " +
                                text_of(parameters_, longest) + " has " + std::to_string(count));
      if (one->several && one->count >= count) {
        count = one->count;
        longest = i;
      }
      if (one->left_out > 0)
        data_.notes.push_back(where + "the last " + std::to_string(one->left_out) + " rows are no whole batch of " +
                              std::to_string(parameters_[i].shape.dim(0)) + ", and are left out");
      parts.push_back(*std::move(one));
    }
    for (int64_t b = 0; b < count; ++b) {
      std::vector<Literal> batch;
      for (size_t i = 0; i < parts.size(); ++i) {
        const Shape& shape = parameters_[i].shape;
        Expected<Literal> value = as_argument(part_of(parts[i].array, shape, parts[i].several ? b : 0), shape);
        if (!value.ok()) return value.status().with_prefix(text_of(parameters_, i) + ": ");
        batch.push_back(*std::move(value));
      }
      data_.batches.push_back(std::move(batch));
    }
    return ok_status();
  }

  static constexpr uint64_t kMostBytes = uint64_t{1} << 36;
  std::string program_;
  const Parameters& parameters_;
  CalibrationData data_;
};

}  // namespace

Expected<CalibrationData> read_calibration_data(const std::vector<std::string>& words, const std::string& program,
                                                const std::vector<DataParameter>& parameters) {
  Reader reader(program, parameters);
  for (const std::string& word : words) COLLET_TRY(reader.read(word));
  return reader.finish();
}

}  // namespace collet::tool
