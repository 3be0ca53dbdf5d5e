/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the function of the library that it is linked with, or that of another library of the process. */

int collet_test_answer(void);
int collet_test_ask(void);

int collet_test_ask(void) {
  return collet_test_answer();
}
