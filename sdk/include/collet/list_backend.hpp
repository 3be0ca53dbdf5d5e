/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_LIST_BACKEND_HPP
#define COLLET_LIST_BACKEND_HPP

/** \file
 * The compiler of a backend whose device takes command lists: a ProgramCompiler (kernel_compiler.hpp) made of ProgramList. The
 * vendor says which commands compute ops, and how a list is loaded and started; this header answers `supports`, keeps the program
 * and its constants, and packs weights that are arguments:
 *
 *     class Compiler final : public collet::commands::ListCompiler {
 *      public:
 *       Compiler() : ListCompiler(list_options, {"integer_dot"}, collet::kernel::QuantizedGroup::kFeatures) {}
 *       std::unique_ptr<collet::commands::Units> make_units() const override;
 *       std::unique_ptr<collet::commands::LoadedList> load(collet::kernel::Device& device, const collet::commands::List& list,
 *                                                          const collet::commands::Units& units,
 *                                                          const std::vector<uint64_t>& array_bytes) const override;
 *     };
 *
 * For a device that is not there yet, command_rows.hpp has units and a machine that compute with the functions of
 * kernel_rows.hpp. Header only.
 */

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "command_loops.hpp"
#include "kernel_backend.hpp"
#include "list_program.hpp"

namespace collet {
namespace commands {

/** A list that is loaded on a device. It is destroyed before the device, when its work has ended. */
class LoadedList {
 public:
  virtual ~LoadedList() = default;
  /** Starts the list after all work that was started on the device before. `arrays` has the memory of each array, by number; it
   * stays allocated until the work has ended. `run_id` is for records. The call need not wait. */
  virtual void start(const std::vector<kernel::Piece>& arrays, uint64_t run_id) = 0;
};

/** Compiles whole programs to command lists: Backend::compiler. The backend has COLLET_TRAIT_INLINE_CONSTANTS, so that constants are
 * packed and stay on the device. May be called from several threads at once. */
class ListCompiler : public kernel::ProgramCompiler {
 public:
  /** `patterns` are names of patterns that the units take as one, `features` COLLET_FEATURE_* of the attributes that they read. */
  ListCompiler(ListOptions options, std::vector<std::string> patterns, uint32_t features)
      : options_(std::move(options)), patterns_(std::move(patterns)), features_(features) {}

  /** Returns the units for one list. They live as long as the list. */
  virtual std::unique_ptr<Units> make_units() const = 0;
  /** Loads a list on a device. `units` are those that made its commands; both outlive the result. `array_bytes` has the size of
   * each array, by number. */
  virtual std::unique_ptr<LoadedList> load(kernel::Device& device, const List& list, const Units& units,
                                           const std::vector<uint64_t>& array_bytes) const = 0;
  /** Returns when the commands of a list run, as the vendor estimates it: for the cost of a program, and for people. Without an
   * override nothing is known. */
  virtual Simulated timing(const List& list, const Units& units) const {
    static_cast<void>(list), static_cast<void>(units);
    return {};
  }
  /** Cycles of `timing` in a nanosecond. */
  virtual double cycles_per_ns() const { return 1; }
  /** True if weights that are arguments are packed as the pieces read them, where that makes their loads dense: once for each array,
   * by the engine that loads. The packed form needs device memory beside the array itself. */
  bool packs_arguments() const override { return true; }

  const char* pattern(uint32_t index) const override {
    return index < patterns_.size() ? patterns_[index].c_str() : nullptr;
  }
  uint32_t pattern_features(uint32_t) const override { return features_; }

  void answer(const collet_program* program, const uint32_t* ops, uint32_t count,
              collet_verdict* verdicts) const override {
    const std::unique_ptr<Units> units = make_units();
    for (uint32_t i = 0; i < count; ++i) {
      const std::string reason = ProgramList::refusal(program, ops[i], options_, *units);
      verdicts[i].answer = reason.empty() ? COLLET_ACCEPT : COLLET_DECLINE;
      collet_copy_text(verdicts[i].reason, sizeof verdicts[i].reason, reason.c_str());
    }
  }

  std::unique_ptr<kernel::WholeProgram> compile(const collet_program* program, bool keep_artifacts,
                                                std::vector<uint32_t>* rejected) const override {
    auto out = std::make_unique<Compiled>(*this, program);
    const Form& form = out->form({});
    const ProgramList& made = *form.made;
    *rejected = made.rejected();
    if (!rejected->empty()) return nullptr;
    out->workspace_bytes = made.workspace_bytes();
    out->resident_bytes = made.resident().size();
    out->traffic_bytes = made.traffic_bytes();
    out->kernels = 1;
    for (uint32_t i = 0; packs_arguments() && i < made.array_bytes().size(); ++i) {
      if (const uint64_t bytes = made.packed_bytes(i)) out->packed_arguments.push_back({i, bytes});
    }
    const Simulated timing = this->timing(made.list(), *form.units);
    out->cycles = timing.cycles;
    out->estimated_ns = static_cast<double>(timing.cycles) / cycles_per_ns();
    if (keep_artifacts) write_artifacts(form, timing, out.get());
    return out;
  }

 private:
  /** The list for arguments of which some are packed. */
  struct Form {
    std::unique_ptr<Units> units;
    std::unique_ptr<ProgramList> made;
  };

  class Compiled final : public kernel::WholeProgram {
   public:
    Compiled(const ListCompiler& compiler, const collet_program* program)
        : compiler_(compiler), block_((program->total_bytes + 7) / 8) {
      std::memcpy(block_.data(), program, program->total_bytes);
    }

    std::unique_ptr<kernel::DeviceProgram> load(kernel::Device& device) override {
      return std::make_unique<OnDevice>(this, device);
    }

    void pack(kernel::Device& device, uint32_t argument, const kernel::Piece& from, const kernel::Piece& to) override {
      const Form& plain = form({});
      LoadedList* list = nullptr;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        Packer& packer = packers_[{&device, argument}];
        if (!packer.loaded) {
          packer.list = std::make_unique<List>(plain.made->packing(argument));
          packer.loaded = compiler_.load(device, *packer.list, *plain.units,
                                         {plain.made->array_bytes()[argument], plain.made->packed_bytes(argument)});
        }
        list = packer.loaded.get();
      }
      list->start({from, to}, 0);
    }

    /** Returns the list for a set of packed arguments, which is written at its first use. */
    const Form& form(const std::set<uint32_t>& packed) {
      const std::lock_guard<std::mutex> lock(mutex_);
      Form& out = forms_[packed];
      if (out.made) return out;
      ListOptions options = compiler_.options_;
      options.packed = packed;
      out.units = compiler_.make_units();
      out.made =
          std::make_unique<ProgramList>(reinterpret_cast<const collet_program*>(block_.data()), options, *out.units);
      return out;
    }
    const ListCompiler& compiler() const { return compiler_; }

   private:
    /** The commands that pack an argument, on a device. */
    struct Packer {
      std::unique_ptr<List> list;
      std::unique_ptr<LoadedList> loaded;
    };

    const ListCompiler& compiler_;
    std::vector<uint64_t> block_;  // a copy of the program, to which the commands' ops point
    std::mutex mutex_;
    std::map<std::set<uint32_t>, Form> forms_;
    std::map<std::pair<kernel::Device*, uint32_t>, Packer> packers_;
  };

  /** A program on a device, with its constants there. */
  class OnDevice final : public kernel::DeviceProgram {
   public:
    OnDevice(Compiled* program, kernel::Device& device) : program_(program), device_(device) {
      const std::string& constants = program->form({}).made->resident();
      list_of({});
      if (constants.empty()) return;
      resident_ = device.allocate(constants.size(), program->compiler().options_.alignment);
      try {
        device.write(resident_, 0, constants.data(), constants.size());
      } catch (...) {
        device.free(resident_);
        throw;
      }
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;
    ~OnDevice() override {
      if (resident_ != kernel::no_memory) device_.free(resident_);
    }

    void launch(kernel::Device&, const std::vector<kernel::Piece>& pieces, uint64_t run_id) override {
      std::set<uint32_t> packed;
      for (uint32_t i = 0; i < pieces.size(); ++i) {
        if (pieces[i].is_packed) packed.insert(i);
      }
      std::vector<kernel::Piece> arrays = pieces;
      arrays.emplace_back();
      arrays.back().memory = resident_;
      list_of(packed).start(arrays, run_id);
    }

   private:
    LoadedList& list_of(const std::set<uint32_t>& packed) {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::unique_ptr<LoadedList>& list = lists_[packed];
      if (!list) {
        const Form& form = program_->form(packed);
        list = program_->compiler().load(device_, form.made->list(), *form.units, form.made->array_bytes());
      }
      return *list;
    }

    Compiled* program_;
    kernel::Device& device_;
    kernel::Memory resident_ = kernel::no_memory;
    std::mutex mutex_;
    std::map<std::set<uint32_t>, std::unique_ptr<LoadedList>> lists_;
  };

  static void write_artifacts(const Form& form, const Simulated& timing, kernel::WholeProgram* out) {
    const List& list = form.made->list();
    const LoopedList looped(list);
    std::string text = looped.text() + std::to_string(list.commands().size()) + " commands, " +
                       std::to_string(looped.commands().size()) + " of them in the list, of " +
                       std::to_string(form.made->group_count()) + " groups, " + std::to_string(timing.cycles) +
                       " cycles; busy:";
    for (size_t e = 0; e < timing.busy.size(); ++e)
      text += " " + list.engines()[e] + " " + std::to_string(timing.busy[e]);
    out->artifacts.emplace_back("commands.txt", text + "\n");
    out->artifacts.emplace_back("commands.json", looped.json());
  }

  ListOptions options_;
  std::vector<std::string> patterns_;
  uint32_t features_;
};

}  // namespace commands
}  // namespace collet

#endif
