"""The custom resources, defined once in Python and generated to CRDs."""
