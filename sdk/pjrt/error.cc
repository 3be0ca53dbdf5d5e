// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/error.h"

#include <utility>

#include "hlo/base/utf8.h"
#include "sdk/pjrt/call.h"

namespace collet::pjrt {
namespace {

const Error* ours(const PJRT_Error* error) {
  return static_cast<const Error*>(error);
}

void destroy(PJRT_Error* error) {
  delete static_cast<Error*>(error);
}

void get_message(const PJRT_Error* error, const char** message, size_t* size) {
  *message = ours(error)->message.c_str();
  *size = ours(error)->message.size();
}

PJRT_Error_Code get_code(const PJRT_Error* error) {
  return ours(error)->code;
}

void for_each_payload(const PJRT_Error*, PJRT_Error_PayloadVisitor, void*) {}

constexpr PJRT_Error_FunctionTable kTable = {
    sizeof(PJRT_Error_FunctionTable), sizeof(Error), nullptr, destroy, get_message, get_code, for_each_payload};

}  // namespace

PJRT_Error* make_error(PJRT_Error_Code code, std::string message) {
  auto* error = new Error;
  error->vtable = &kTable;
  error->code = code == PJRT_Error_Code_OK ? PJRT_Error_Code_UNKNOWN : code;
  error->message = printable(message);
  return error;
}

PJRT_Error* invalid_argument(std::string message) {
  return make_error(PJRT_Error_Code_INVALID_ARGUMENT, std::move(message));
}
PJRT_Error* unimplemented(std::string message) {
  return make_error(PJRT_Error_Code_UNIMPLEMENTED, std::move(message));
}
PJRT_Error* failed_precondition(std::string message) {
  return make_error(PJRT_Error_Code_FAILED_PRECONDITION, std::move(message));
}

PJRT_Error* from_collet(collet_status status, const char* message) {
  if (status == COLLET_OK) return nullptr;
  const bool known = status > 0 && status <= PJRT_Error_Code_UNAUTHENTICATED;
  return make_error(known ? static_cast<PJRT_Error_Code>(status) : PJRT_Error_Code_UNKNOWN, message ? message : "");
}

PJRT_Error* too_short(const char* name, size_t size, size_t least) {
  return invalid_argument(std::string(name) + " has " + std::to_string(size) + " bytes; at least " +
                          std::to_string(least) + " are needed");
}

PJRT_Error* call(PJRT_Error_Destroy_Args& args) {
  if (args.error) destroy(args.error);
  return nullptr;
}

PJRT_Error* call(PJRT_Error_Message_Args& args) {
  if (!args.error) return invalid_argument("no error");
  get_message(args.error, &args.message, &args.message_size);
  return nullptr;
}

PJRT_Error* call(PJRT_Error_GetCode_Args& args) {
  if (!args.error) return invalid_argument("no error");
  args.code = get_code(args.error);
  return nullptr;
}

PJRT_Error* call(PJRT_Error_ForEachPayload_Args&) {
  return nullptr;
}

}  // namespace collet::pjrt
