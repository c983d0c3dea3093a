#pragma once

// Numbers of elementwise functions, for shaders and for C++.
#define F_NONE 0
#define F_ABS 1
#define F_ACOS 2
#define F_ASIN 3
#define F_ATAN 4
#define F_ATANH 5
#define F_CEIL 6
#define F_CLAMPED_RELU 7
#define F_CLIP 8
#define F_COS 9
#define F_COSH 10
#define F_ELU 11
#define F_ERF 12
#define F_EXP 13
#define F_EXP2 14
#define F_FLOOR 15
#define F_GELU 16
#define F_GELU_SIGMOID 17
#define F_GELU_TANH 18
#define F_HARD_SWISH 19
#define F_INVERSE 20
#define F_LEAKY_RELU 21
#define F_LINEAR 22
#define F_LOG 23
#define F_RELU 24
#define F_RELU6 25
#define F_ROUND 26
#define F_RSQRT 27
#define F_SCALED_TANH 28
#define F_SIGMOID 29
#define F_SIGMOID_HARD 30
#define F_SIGN 31
#define F_SILU 32
#define F_SIN 33
#define F_SINH 34
#define F_SOFTPLUS 35
#define F_SOFTSIGN 36
#define F_SQRT 37
#define F_SQUARE 38
#define F_TAN 39
#define F_TANH 40
#define F_THRESHOLD 41
#define F_THRESHOLDED_RELU 42

#define B_ADD 0
#define B_SUB 1
#define B_MUL 2
#define B_DIV 3
#define B_MAX 4
#define B_MIN 5
#define B_POW 6
#define B_FLOOR_DIV 7
#define B_MOD 8
#define B_PRELU 9
#define B_EQUAL 10
#define B_NOT_EQUAL 11
#define B_LESS 12
#define B_LESS_EQUAL 13
#define B_GREATER 14
#define B_GREATER_EQUAL 15
#define B_AND 16
#define B_OR 17
#define B_XOR 18

#define POOL_MAX 0
#define POOL_MEAN 1
#define POOL_MEAN_INSIDE 2
#define POOL_L2 3

#define RECURRENT_PLAIN 0
#define RECURRENT_GRU 1
#define RECURRENT_GATES 2
#define RECURRENT_NEW 3

// Ways to pad.
#define PAD_CONSTANT 0
#define PAD_REFLECT 1
#define PAD_REPLICATE 2

// Reductions.
#define R_SUM 0
#define R_MEAN 1
#define R_MAX 2
#define R_MIN 3
#define R_PROD 4
#define R_L1 5
#define R_L2 6
#define R_SUM_SQUARE 7
#define R_LOG_SUM 8
#define R_LOG_SUM_EXP 9

// Functions of channels.
#define CHANNELS_BATCH_NORM 0
#define CHANNELS_SOFTPLUS 1

// Rules of a scatter, as ops::Combine.
#define SCATTER_UPDATE 0
#define SCATTER_ADD 1
#define SCATTER_SUB 2
#define SCATTER_MUL 3
#define SCATTER_DIV 4
#define SCATTER_MAX 5
#define SCATTER_MIN 6

// What is outside of a sampled image, and the range of coordinates.
#define SAMPLE_CONSTANT 0
#define SAMPLE_BORDER 1
#define SAMPLE_REFLECTION 2
#define SAMPLE_SYMMETRIC 3
#define SAMPLE_PIXELS 0
#define SAMPLE_MINUS_ONE_TO_ONE 1
#define SAMPLE_ZERO_TO_ONE 2

// The image of a box.
#define BOX_OF_EVERY_IMAGE 0
#define BOX_NAMES_IMAGE 1
#define BOX_INDEX_OF_IMAGE 2
#define BOX_IS_IMAGE 3
