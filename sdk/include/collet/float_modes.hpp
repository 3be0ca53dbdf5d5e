// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The modes of a thread's floating-point arithmetic: how it rounds, which exceptions trap, and what becomes of subnormal
/// numbers. Applications and other libraries change them (`fesetround`, `feenableexcept`, "flush to zero" of TensorFlow and
/// PyTorch), and threads inherit them from the thread that started them. Nothing to link.

#include <cstdint>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <cfenv>
#endif

namespace collet {

/// What arithmetic makes of subnormal numbers.
enum class Subnormals : uint8_t {
  kKeep,   ///< as IEEE 754 says
  kFlush,  ///< operands and results are zeros of their signs; kKeep on processors other than x86-64 and AArch64
};

/// The modes of a thread as they were read: for the same thread later, or for another thread.
class FloatModes {
 public:
  /// Returns the modes of the calling thread.
  static FloatModes present() {
    FloatModes out;
#if defined(__x86_64__)
    out.bits_ = __builtin_ia32_stmxcsr() & ~kRaised;
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(out.bits_));
#else
    std::fegetenv(&out.all_);
#endif
    return out;
  }

  /// Returns the default modes of IEEE 754: rounding to nearest, no traps. Compilers assume these modes.
  static FloatModes usual(Subnormals subnormals = Subnormals::kKeep) {
    FloatModes out;
#if defined(__x86_64__)
    out.bits_ = kMasked | (subnormals == Subnormals::kFlush ? kFlushes : 0);
#elif defined(__aarch64__)
    out.bits_ = subnormals == Subnormals::kFlush ? kFlushes : 0;
#else
    (void)subnormals;
    out.all_ = *FE_DFL_ENV;
#endif
    return out;
  }

  /// Makes these the modes of the calling thread. The exceptions that it has raised stay raised.
  void set() const {
#if defined(__x86_64__)
    const uint32_t now = __builtin_ia32_stmxcsr();
    if ((now & ~kRaised) != bits_) __builtin_ia32_ldmxcsr(bits_ | (now & kRaised));
#elif defined(__aarch64__)
    if (present().bits_ != bits_) __asm__ volatile("msr fpcr, %0" ::"r"(bits_));
#else
    std::feupdateenv(&all_);
#endif
  }

 private:
#if defined(__x86_64__)
  static constexpr uint32_t kRaised = 0x3f;
  static constexpr uint32_t kMasked = 0x1f80;
  static constexpr uint32_t kFlushes = 0x8040;
  uint32_t bits_ = 0;
#elif defined(__aarch64__)
  static constexpr uint64_t kFlushes = uint64_t{1} << 24 | uint64_t{1} << 19;  // also of f16
  uint64_t bits_ = 0;
#else
  std::fenv_t all_;
#endif
};

/// Sets modes of the calling thread, and restores those before at the end of the scope.
class ScopedFloatModes {
 public:
  explicit ScopedFloatModes(const FloatModes& modes = FloatModes::usual()) : before_(FloatModes::present()) {
    modes.set();
  }
  ~ScopedFloatModes() { before_.set(); }
  ScopedFloatModes(const ScopedFloatModes&) = delete;
  ScopedFloatModes& operator=(const ScopedFloatModes&) = delete;

 private:
  const FloatModes before_;
};

}  // namespace collet
