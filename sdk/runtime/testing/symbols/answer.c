/* SPDX-License-Identifier: Apache-2.0 */
/* A function that two libraries export, with different results. */

int collet_test_answer(void);

int collet_test_answer(void) {
  return ANSWER;
}
